"""How often a case is measured over: so many times, or until its mean is known."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evmperf.measure.progress import Progress
from evmperf.model import anytime
from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.results import REPEAT, Direction

_UNTIL = re.compile(r"until:(\d+(?:\.\d+)?)%(?:/(\w+))?")
_BUDGET_S = 600.0


@dataclass(frozen=True)
class Repeats:
    """`rounds` times, or with `within` until the 95 % confidence interval of each mean is within
    that part of it, or `budget_s` seconds are spent. `boots` are the cold boots of a round of boot
    times, 0 those of the profile.
    """

    rounds: int = 1
    within: float | None = None
    budget_s: float = _BUDGET_S
    boots: int = 0

    def enough(self, progress: Progress, spent_s: float) -> bool:
        """Whether a case need not be measured again; notes in its conditions how that came."""
        if self.within is None:
            if self.rounds > 1:
                progress.conditions[REPEAT] = _rounds(progress)
            return progress.rounds >= self.rounds
        widest = max(_widths(progress), default=0.0)
        known = widest <= self.within
        if not known and spent_s * (1 + 1 / progress.rounds) < self.budget_s:
            return False
        why = "" if known else f", not within {self.within:.1%} in {self.budget_s:g} s"
        progress.conditions[REPEAT] = f"{_rounds(progress)}{why}"
        return True


def parse(text: str, boots: int = 0) -> Repeats:
    """Read `5`, `until:2%` or `until:2%/30m`; raises UsageError for anything else."""
    if boots < 0:
        raise UsageError(f"--boots={boots}: must be at least 1")
    if text.isdigit() and int(text) > 0:
        return Repeats(int(text), boots=boots)
    if match := _UNTIL.fullmatch(text):
        percent, budget = match.groups()
        spent = seconds(budget) if budget else _BUDGET_S
        if float(percent) > 0 and spent > 0:
            return Repeats(within=float(percent) / 100, budget_s=spent, boots=boots)
    raise UsageError(
        f"--repeat={text} is neither a number of times nor until:PERCENT%, as until:2% or "
        f"until:2%/30m (a budget for each case, else {_BUDGET_S / 60:g} minutes)"
    )


def _rounds(progress: Progress) -> str:
    return f"{progress.rounds} round{'s' if progress.rounds > 1 else ''}"


def _widths(progress: Progress) -> list[float]:
    """The intervals' half widths of the metrics that have a better and a worse, as parts of their
    means; infinite for too few values. They hold although one looks after each round.
    """
    names = [m.name for m in progress.benchmark.metrics_of(progress.case)
             if m.better is not Direction.NONE]  # fmt: skip
    found = (progress.values(name) for name in names)
    widths = (anytime.half_width(values) for values in found if any(values))
    return [math.inf if width is None else width for width in widths]
