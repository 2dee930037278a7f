"""A run's figures beside the published ones of its board, for the top of its report."""

from collections.abc import Sequence
from typing import NamedTuple

from evmperf.benchmarks import wording
from evmperf.model.figures import Baseline, Key
from evmperf.model.results import Result
from evmperf.model.stats import rounded
from evmperf.report.table import Row, baseline_cells

MOST = 60
"""Rows that are shown."""


class Beside(NamedTuple):
    """One figure: ours, the published one, how much ours differs ("" where they are not comparable),
    and the releases before, as `10.00: 55.1, 11.00: 56`.
    """

    name: str
    ours: str
    unit: str
    published: str
    change: str
    history: str


def beside(nearest: Baseline, every: Sequence[Baseline], result: Result, row: Row) -> Beside | None:
    """A row beside the nearest release's figure; None where that has none."""
    theirs, change = baseline_cells(nearest, result, row)
    if not theirs:
        return None
    key = Key(row.benchmark, row.case, row.metric)
    known = [(one.published.release, one.figures[key]) for one in every if key in one.figures]
    history = ", ".join(f"{release}: {rounded(f.mean)}" for release, f in known if f.unit == row.unit)
    return Beside(wording.figure(key), row.mean, row.unit, theirs, change, history)
