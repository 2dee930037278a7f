"""When a case has been measured often enough."""

import math

from evmperf.measure.progress import StepProgress
from evmperf.model import anytime
from evmperf.model.repeats import Repeats
from evmperf.model.results import REPEAT, Direction


def enough(repeats: Repeats, progress: StepProgress, spent_s: float) -> bool:
    """Whether a case has been repeated often enough; notes the reason in its conditions."""
    if repeats.within is None:
        if repeats.rounds > 1:
            progress.conditions[REPEAT] = _rounds(progress)
        return progress.rounds >= repeats.rounds
    widest = max(_widths(progress), default=0.0)
    known = widest <= repeats.within
    if not known and spent_s * (1 + 1 / progress.rounds) < repeats.budget_s:
        return False
    why = "" if known else f", not within {repeats.within:.1%} in {repeats.budget_s:g} s"
    progress.conditions[REPEAT] = f"{_rounds(progress)}{why}"
    return True


def _rounds(progress: StepProgress) -> str:
    return f"{progress.rounds} round{'s' if progress.rounds > 1 else ''}"


def _widths(progress: StepProgress) -> list[float]:
    """Half widths of the metrics' confidence intervals, relative to their means, for metrics with a
    direction; infinite for too few values. The intervals allow a check after each round.
    """
    names = [m.name for m in progress.benchmark.metrics_of(progress.case) if m.better is not Direction.NONE]
    found = (progress.values(name) for name in names)
    widths = (anytime.half_width(values) for values in found if any(values))
    return [math.inf if width is None else width for width in widths]
