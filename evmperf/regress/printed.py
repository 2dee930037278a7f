"""Is a figure beside a published one another? What a guide prints is a mean, and the smallest and
the largest of an unknown number of runs; a figure without bounds is one run.

The model, in the words of docs/judging.md ("Against published figures"): two ranges are different
when either's mean is outside of the other; one run is different from a range when it is outside of
what a further run of it would keep to; two single runs are different when they are further apart
than runs of that metric usually are. What lies between is not called either way: it is unclear.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from scipy import stats

from evmperf.model.figures import Figure
from evmperf.published.declared import tables

RUNS = 5
"""Runs that a printed range is taken to be of; how many they were is not printed."""
_RANGE_SDS = {2: 1.128, 3: 1.693, 5: 2.326, 10: 3.078, 20: 3.735}
"""Width of a range in standard deviations, by the number of samples from a normal distribution
(L. H. C. Tippett, Biometrika 17, 1925).
"""
_SURE = 0.05
"""Probability of one more run outside of what is called the same."""
_UNREMARKABLE = 0.05
"""Relative difference of two single runs that nobody calls a change."""


class Seen(enum.Enum):
    """What a reader with both figures before him can say."""

    SAME = enum.auto()
    CHANGED = enum.auto()
    UNCLEAR = enum.auto()


@dataclass(frozen=True)
class Beside:
    """`tolerance` is how far from the baseline a figure is no change, in its unit."""

    seen: Seen
    tolerance: float
    why: str = ""


def beside(figure: Figure, baseline: Figure, usual: float) -> Beside:
    """Compare a figure with a published one; `usual` is the metric's usual relative standard
    deviation from run to run.
    """
    ours, theirs = _range(figure), _range(baseline)
    moved = abs(figure.mean - baseline.mean)
    step = _step(baseline)
    if ours and theirs:
        apart = not _within(figure.mean, theirs) and not _within(baseline.mean, ours)
        seen = Seen.CHANGED if apart and moved > step else Seen.SAME
        return Beside(seen, _reach(baseline.mean, theirs))
    if theirs:
        return _one_run(figure.mean, baseline.mean, theirs, step)
    if ours:
        return _one_run(baseline.mean, figure.mean, ours, step)
    return _two_runs(moved, abs(baseline.mean), usual, step)


def _one_run(run: float, mean: float, known: tuple[float, float], step: float) -> Beside:
    """One run beside a printed range."""
    if _within(run, known):
        return Beside(Seen.SAME, _reach(mean, known))
    allowed = max(_further_run(known), step)
    if abs(run - mean) > allowed:
        return Beside(Seen.CHANGED, allowed)
    return Beside(Seen.UNCLEAR, allowed, "one run, a little outside of a printed range")


def _two_runs(moved: float, mean: float, usual: float, step: float) -> Beside:
    """Two single runs."""
    allowed = max(float(stats.norm.isf(_SURE / 2)) * math.sqrt(2) * usual * mean, step)
    if moved > allowed:
        return Beside(Seen.CHANGED, allowed)
    if moved > max(_UNREMARKABLE * mean, step):
        return Beside(Seen.UNCLEAR, allowed, "two single runs, which may differ by that much")
    return Beside(Seen.SAME, allowed)


def _range(figure: Figure) -> tuple[float, float] | None:
    if figure.low is None or figure.high is None or figure.low == figure.high:
        return None
    return figure.low, figure.high


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _reach(mean: float, bounds: tuple[float, float]) -> float:
    """How far the further end of a range is from its mean."""
    return max(mean - bounds[0], bounds[1] - mean)


def _further_run(bounds: tuple[float, float]) -> float:
    """How far from the mean of RUNS runs, of which only the range is known, one more run is at
    most, but for a share of _SURE (Student's t).
    """
    deviation = (bounds[1] - bounds[0]) / _RANGE_SDS[RUNS]
    return float(stats.t.isf(_SURE / 2, RUNS - 1)) * deviation * math.sqrt(1 + 1 / RUNS)


def _step(figure: Figure) -> float:
    """The resolution of the program at a figure: to the next value that it can print."""
    table = tables().get(figure.key.benchmark)
    quotient = table.quotients.get(figure.key.case) if table else None
    return figure.mean**2 / quotient if quotient else 0.0
