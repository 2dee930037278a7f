"""How often a case is measured: as its profile says, so many times, or until it is known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evmperf.measure.progress import Progress
from evmperf.model import anytime
from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.results import Direction
from evmperf.model.units import Unit

_BUDGET_S = 600.0
_MOST = 200
_UNTIL = re.compile(r"until:(\d+(?:\.\d+)?)%(?:/([\d.dhms]+))?")


@dataclass(frozen=True)
class Repeats:
    """`times` of a case, or until the 95 % confidence interval of each mean is `within` (a share of
    it) or `budget_s` seconds are spent on the case. The interval is one that may be looked at after
    each time (evmperf.model.anytime). Loads scatter too much to wait for.
    """

    asked: str
    times: int = _MOST
    within: float = 0.0
    budget_s: float = _BUDGET_S

    def enough(self, progress: Progress, done: int, spent_s: float) -> str:
        """Why a case needs no further measurement after `done` of them, "" if it does."""
        if done >= self.times:
            return f"{done} times"
        if not self.within:
            return ""
        if all(self._known(progress, name) for name in _awaited(progress)):
            return f"every mean is known within {self.within:.3g} of itself"
        if spent_s * (1 + 1 / done) > self.budget_s:
            return f"the budget of {self.budget_s:.0f} s is spent"
        return ""

    def _known(self, progress: Progress, metric: str) -> bool:
        values = [sample.value for sample in progress.samples if sample.metric == metric]
        share = anytime.half_width(values)
        return share is not None and share <= self.within


def parse(text: str) -> Repeats | None:
    """What `--repeat` asks for: `5`, `until:2%`, `until:2%/30m`; None for "". Raises UsageError."""
    if not text:
        return None
    if text.isdigit() and 0 < int(text) <= _MOST:
        return Repeats(text, times=int(text))
    match = _UNTIL.fullmatch(text)
    if not match or not 0 < float(match[1]) < 100:
        raise UsageError(
            f"--repeat {text}: say how often (up to {_MOST}), or until:2%, or until:2%/30m with "
            f"the most time for a case (else 10 minutes)"
        )
    budget = seconds(match[2]) if match[2] else _BUDGET_S
    return Repeats(text, within=float(match[1]) / 100, budget_s=budget)


def _awaited(progress: Progress) -> Iterable[str]:
    """The metrics that somebody waits for: all that every run must have, but loads."""
    return [
        metric.name
        for metric in progress.benchmark.metrics_of(progress.case)
        if metric.required and metric.unit != Unit.PERCENT and metric.better is not Direction.NONE
    ]
