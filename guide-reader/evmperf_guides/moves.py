"""How published figures move from release to release, by the record: what a jump is held against."""

import bisect
import functools
import itertools
import math
import statistics
from dataclasses import dataclass, field

from evmperf.judge.published import record, scatter
from evmperf.model.figures import Key

ROWS = 3
"""Rows that make a table's move."""
_ENOUGH = 30
"""Moves of a metric that tell its habit; where a table has fewer, those of all tables of its unit do."""


@dataclass
class Habits:
    """What the record's boards did between two releases, sorted, by kind: `move` of a figure and of the
    middle row of a `table` (logarithms of factors), and `range` of a figure, relative to its mean. Each is
    known by table and metric, and by what tables have in common: the unit, or of whole tables the metric.
    """

    pools: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    def odds(self, kind: str, key: Key, common: str, size: float) -> tuple[float, int]:
        """How improbable this size or a larger one is, and by how many of its kind that is known."""
        pool = self.pools.get((kind, key.benchmark, key.metric), [])
        if len(pool) < _ENOUGH:
            pool = self.pools.get((kind, common), pool)
        above = len(pool) - bisect.bisect_left(pool, size)
        return (above + 1) / (len(pool) + 2), len(pool)

    def add(self, kind: str, key: Key, common: str, size: float) -> None:
        """Add what one figure or table did."""
        for name in ((kind, key.benchmark, key.metric), (kind, common)):
            self.pools.setdefault(name, []).append(size)


@functools.cache
def known(before: str = "") -> Habits:
    """The habits of the record's boards. With `before` (YYYY-MM-DD), older guides alone count."""
    found = Habits()
    entries = (entry for entry in record.entries() if not before or entry.date < before)
    for _, group in itertools.groupby(entries, key=lambda entry: (entry.board, entry.os)):
        mine = sorted(group, key=lambda entry: entry.place)
        whole: dict[tuple[Key, tuple[int, ...]], list[float]] = {}
        for key, series in scatter.of_entries(mine, doubtful=False).items():
            for (_, (_, unit, old)), (time, (_, same, new)) in itertools.pairwise(sorted(series.items())):
                if unit == same and old > 0 and new > 0:
                    whole.setdefault((key._replace(case=""), time), []).append(math.log(new / old))
                    if new != old:  # a copy is no move
                        found.add("move", key, unit, abs(math.log(new / old)))
        for (column, _), ratios in whole.items():
            if len(ratios) >= ROWS:
                found.add("table", column, column.metric, abs(statistics.median(ratios)))
        for case, value in (pair for entry in mine for pair in record.values(entry)):
            if value.low is not None and value.high is not None and value.mean > 0 and not value.doubt:
                key = Key(case.benchmark, case.name, value.metric)
                found.add("range", key, value.unit, (value.high - value.low) / value.mean)
    for pool in found.pools.values():
        pool.sort()
    return found
