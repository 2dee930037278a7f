"""How published figures move from release to release, by the record: what a jump is held against."""

import bisect
import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evmperf.judge.published import record, scatter
from evmperf.judge.published.record import Entry
from evmperf.judge.published.scatter import History
from evmperf.model.figures import Key

ROWS = 3
"""Rows that make a table's move."""
_ENOUGH = 30
"""Moves of a metric that tell its habit; where a table has fewer, those of all tables of its unit do."""


@dataclass
class Habits:
    """What the record's boards did between two releases, sorted: relative moves and relative ranges by table
    and metric and by unit, and how often a figure stayed the same to the digit.
    """

    moves: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    ranges: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    tables: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    def table(self, benchmark: str, metric: str, middle: float) -> tuple[float, int]:
        """How improbable it is that the middle row of a table moves by this logarithm."""
        mine = self.tables.get((benchmark, metric), [])
        return _tail(mine if len(mine) >= _ENOUGH else self.tables.get((metric,), mine), abs(middle))

    def moved(self, key: Key, unit: str, ratio: float) -> tuple[float, int]:
        """How improbable a move by this factor is, and by how many moves that is known."""
        return _tail(_known(self.moves, key, unit), abs(math.log(ratio)))

    def spread(self, key: Key, unit: str, width: float) -> tuple[float, int]:
        """How improbable a range of this width, relative to its mean, is."""
        return _tail(_known(self.ranges, key, unit), width)


def _known(pool: Mapping[tuple[str, ...], list[float]], key: Key, unit: str) -> list[float]:
    mine = pool.get((key.benchmark, key.metric), [])
    return mine if len(mine) >= _ENOUGH else pool.get((unit,), mine)


def _tail(pool: list[float], value: float) -> tuple[float, int]:
    above = len(pool) - bisect.bisect_left(pool, value)
    return (above + 1) / (len(pool) + 2), len(pool)


def habits(entries: Iterable[Entry]) -> Habits:
    """The habits of all boards among some entries of the record."""
    boards: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        boards.setdefault((entry.board, entry.os), []).append(entry)
    found = Habits()
    for mine in boards.values():
        mine.sort(key=lambda entry: entry.place)
        _add_moves(found, scatter.of_entries(mine, doubtful=False))
        for case, value in (pair for entry in mine for pair in record.values(entry)):
            if value.low is not None and value.high is not None and value.mean > 0 and not value.doubt:
                width = (value.high - value.low) / value.mean
                _add(found.ranges, width, (case.benchmark, value.metric), (value.unit,))
    for pool in (*found.moves.values(), *found.ranges.values(), *found.tables.values()):
        pool.sort()
    return found


def _add_moves(found: Habits, history: History) -> None:
    """Add what the figures and the tables of one board did from each release to the next."""
    whole: dict[tuple[str, str, tuple[int, ...]], list[float]] = {}
    for key, series in history.items():
        for (_, (_, unit, before)), (time, (_, same, after)) in itertools.pairwise(sorted(series.items())):
            if unit == same and before > 0 and after > 0:
                move = math.log(after / before)
                whole.setdefault((key.benchmark, key.metric, time), []).append(move)
                if move:  # a copy is no move
                    _add(found.moves, abs(move), (key.benchmark, key.metric), (unit,))
    for (benchmark, metric, _), ratios in whole.items():
        if len(ratios) >= ROWS:
            _add(found.tables, abs(statistics.median(ratios)), (benchmark, metric), (metric,))


def _add(pools: dict[tuple[str, ...], list[float]], value: float, *names: tuple[str, ...]) -> None:
    for name in names:
        pools.setdefault(name, []).append(value)


@functools.cache
def known(before: str = "") -> Habits:
    """The habits of the record's boards. With `before` (YYYY-MM-DD), older guides alone count."""
    return habits(entry for entry in record.entries() if not before or entry.date < before)
