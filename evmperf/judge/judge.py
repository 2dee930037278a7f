"""What a figure's difference from its baseline is called. Many metrics are compared at once, so the false
discovery rate is held (Y. Benjamini, Y. Hochberg, Journal of the Royal Statistical Society B 57, 1995): of
the metrics called better or worse, at most a share `level` is expected to be neither; and when nothing
changed at all, a run raises any alarm with at most that probability, given normal noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evmperf.benchmarks import control
from evmperf.judge.accepted import Accepted
from evmperf.judge.published import declared
from evmperf.judge.published.declared import tables
from evmperf.model.figures import Figure, Key
from evmperf.model.records import VerdictRecord
from evmperf.model.results import HIGHER, LOWER, Direction
from evmperf.model.run import Run
from evmperf.model.stats import percent, share_text
from evmperf.model.units import Unit
from evmperf.model.verdict import WITHIN, WITHIN_POINTS, Outcome, Reason, Verdict, better_or_worse

LEVEL = 0.12
"""Share of false alarms of a comparison with single figures, where nobody says otherwise."""
SMALLEST = 0.01
"""Relative change below which nothing is called changed, however sure it is."""
SMALLEST_POINTS = 0.2
"""The same for loads, in percentage points."""


@dataclass(frozen=True)
class Subject:
    """A run to be judged."""

    run: Run
    figures: Mapping[Key, Figure]
    marks: Sequence[Accepted] = ()

    def verdict(self, key: Key, outcome: Outcome, why: str = "") -> Verdict:
        """A verdict on one metric, without a comparison yet."""
        figure = self.figures[key]
        mine = key.benchmark == control.NAME
        return Verdict(key, outcome, figure.unit, better(key), figure.mean, why=why, control=mine)


def not_judged(key: Key, doubt: str = "") -> str:
    """Why a metric is shown only; `doubt` is what others beside it show its figure to be."""
    if doubt:
        return f"known artefact: {doubt}"
    table = tables().get(key.benchmark)
    if table and (other := table.aliases.get(key.case)):
        return f"second name of {other}"
    if better(key) is Direction.NONE:
        return "it has no better direction"
    return ""


def better(key: Key) -> Direction:
    """Which way a metric gets better; NONE for one that no table has and whose name does not say it."""
    if metric := declared.metric(key):
        return metric.better
    return {LOWER: Direction.LOWER, HIGHER: Direction.HIGHER}.get(key.metric, Direction.NONE)


def is_open_loss(record: VerdictRecord) -> bool:
    """Whether a figure has an open alarm of a loss: by the metric's direction, else by the verdict."""
    if record.alarm is None or not record.alarm.is_open:
        return False
    way = better(record.key)
    if way is Direction.NONE:
        return record.verdict != Outcome.BETTER
    return better_or_worse(record.alarm.size, way) is Outcome.WORSE


def limit(p_values: Sequence[float], level: float) -> float:
    """The p-value up to which a metric is called changed, so that the false discovery rate is at
    most `level`.
    """
    limits = level * np.arange(1, len(p_values) + 1) / max(len(p_values), 1)
    within = np.sort(p_values) <= limits
    return float(limits[within].max(initial=limits[0])) if p_values else level


def same_or_unknown(
    verdict: Verdict,
    farthest: float,
    more: str = "",
    odd: str = "such figures differ as much; more runs decide",
) -> Verdict:
    """The same, where the figure is shown to be at most `farthest` (in its unit) from the baseline
    and that is within the margin. `odd` is why one that is far off is not decided.
    """
    baseline = abs(verdict.baseline or 0.0)
    margin = WITHIN * baseline
    if verdict.unit == Unit.PERCENT:
        margin = max(margin, WITHIN_POINTS)
    if farthest <= margin:
        return replace(verdict, outcome=Outcome.SAME)
    why, seen, change = "", verdict.tolerance, verdict.change
    if change is not None and (
        not 1 / _ODD < 1 + change < _ODD or abs(change) * baseline > (seen or math.inf)
    ):
        why = f"{percent(change)}: {odd}"
        return replace(verdict, outcome=Outcome.UNKNOWN, why=why, reason=Reason.ODD)
    if seen is not None:
        size = share_text(seen / baseline) if baseline else f"{seen:g} {verdict.unit}"
        why = f"a change {'under' if size[0].isdigit() else 'of'} {size}{more} would not show"
    return replace(verdict, outcome=Outcome.UNKNOWN, why=why, reason=Reason.NOISE if why else Reason.OTHER)


_ODD = 1.5
"""Times its baseline, or its part, from which nobody calls a figure noise."""


def changed(verdict: Verdict, value: float | None) -> Verdict:
    """Better or worse, where a change is large enough for anybody to care."""
    if value is None or verdict.baseline is None:
        return verdict
    moved = value - verdict.baseline
    least = SMALLEST * abs(verdict.baseline)
    if verdict.unit == Unit.PERCENT:
        least = max(least, SMALLEST_POINTS)
    if abs(moved) < least:
        return verdict
    return replace(verdict, outcome=better_or_worse(moved, verdict.better))
