"""The figures of a board's runs out of InfluxDB, fetched together and kept as columns of numbers.

A request or two for each night of a year take minutes, and Flux takes longer to line up the fields
of points than to read them. InfluxQL gives the points of a series in rows and its tags once.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from evmperf.influx.client import Store
from evmperf.model import comparable
from evmperf.model.figures import Key
from evmperf.model.run import Run
from evmperf.runs.history import GUIDE, Taken
from evmperf.runs.measurements import RESULT, SAMPLE

_WHICH = f'WHERE "board" = $board AND "kind" != \'{GUIDE}\' AND time >= {{since}}'
_RESULTS = (
    f'SELECT "run", "version", "tools", "conditions" FROM "{RESULT}" {_WHICH} AND "samples" > 0 '
    'GROUP BY "benchmark", "case", "driver", "profile"'
)
_SAMPLES = (
    f'SELECT "run", "started_ns", "value", "unit" FROM "{SAMPLE}" {_WHICH} '
    'GROUP BY "benchmark", "case", "metric"'
)
_NOT_MEASURED = -1
"""The place of a case without a result, as of a push that was killed between samples and result."""


class _ResultRow(NamedTuple):
    time_ns: int
    run: str | None
    version: int | None
    tools: str | None
    conditions: str | None


class _SampleRow(NamedTuple):
    time_ns: int
    run: str | None
    started_ns: int | None
    value: float | None
    unit: str | None


class Columns:
    """The figures of some runs of one board, without guides. They are fetched when the first is
    asked for: those of that run and of all that began later.
    """

    def __init__(self, store: Store, runs: Sequence[Run]) -> None:
        self._store = store
        self._numbers = {run.id: number for number, run in enumerate(runs)}
        self._since: int | None = None
        self._columns: dict[Key, _Column] = {}
        self._under: dict[tuple[str, str], array[int]] = {}
        """What each case was measured under, by run: places in `_cases`, or _NOT_MEASURED."""
        self._cases: list[comparable.Case] = []
        self._units: list[str] = []

    def of(self, run: Run) -> Iterator[Taken]:
        """The figures of one run; raises StoreError."""
        if self._since is None or run.started_ns < self._since:
            self._fetch(run.board, run.started_ns)
        number = self._numbers[run.id]
        for key, column in self._columns.items():
            unit, samples = column.get(number)
            cases = self._under.get((key.benchmark, key.case))
            place = cases[number] if cases else _NOT_MEASURED
            if samples and place != _NOT_MEASURED:
                yield Taken(key, self._units[unit], samples, self._cases[place])

    def _fetch(self, board: str, since: int) -> None:
        self._columns, self._under, self._cases, self._units = {}, {}, [], []
        with ThreadPoolExecutor(1) as beside:  # the server has a core for each
            cases = beside.submit(self._fetch_cases, board, since)
            self._fetch_samples(board, since)
            cases.result()
        self._since = since

    def _fetch_cases(self, board: str, since: int) -> None:
        known: dict[tuple[object, ...], int] = {}
        for series in self._store.select(_RESULTS.format(since=since), _ResultRow, board=board):
            tags = series.tags
            name = tags["benchmark"], tags["case"]
            if name not in self._under:
                self._under[name] = array("i", [_NOT_MEASURED]) * len(self._numbers)
            for _, run, version, tools, conditions in series.values:
                if run in self._numbers:
                    alike = (tags["driver"], tags["profile"], version or 0, tools, conditions)
                    place = known.setdefault(alike, len(self._cases))
                    if place == len(self._cases):
                        self._cases.append(_case(*alike))
                    self._under[name][self._numbers[run]] = place

    def _fetch_samples(self, board: str, since: int) -> None:
        units: dict[str, int] = {}
        key, found = None, _Samples()
        for series in self._store.select(_SAMPLES.format(since=since), _SampleRow, board=board):
            tags = series.tags
            next_key = Key(tags["benchmark"], tags["case"], tags["metric"])
            if next_key != key:  # a long series comes in parts
                if key:
                    self._columns[key] = _Column(len(self._numbers), found)
                key, found = next_key, _Samples()
            for _, run, started_ns, value, unit in series.values:
                if run in self._numbers and value is not None:
                    place = units.setdefault(unit or "", len(units))
                    found.add(self._numbers[run], started_ns or 0, place, value)
        if key:
            self._columns[key] = _Column(len(self._numbers), found)
        self._units = list(units)


def _case(
    driver: str, profile: str, version: int, tools: str | None, conditions: str | None
) -> comparable.Case:
    return comparable.Case(
        driver, profile, version, json.loads(tools or "{}"), json.loads(conditions or "{}")
    )


class _Samples:
    """The samples of one figure while they are read; of a case measured twice, the later's."""

    def __init__(self) -> None:
        self.by_run: dict[int, tuple[int, int, list[float]]] = {}
        """When the case began, the place of the unit, and the values."""

    def add(self, run: int, started_ns: int, unit: int, value: float) -> None:
        there = self.by_run.get(run)
        if there is None or there[0] < started_ns:
            self.by_run[run] = (started_ns, unit, [value])
        elif there[0] == started_ns:
            there[2].append(value)


class _Column:
    """One figure in all runs: where its samples are in one array, how many, and their unit."""

    __slots__ = ("_count", "_unit", "_values", "_where")

    def __init__(self, runs: int, found: _Samples) -> None:
        self._where, self._count, self._unit = (array("I", [0]) * runs for _ in range(3))
        self._values = array("d")
        for run, (_, unit, values) in found.by_run.items():
            self._where[run], self._count[run] = len(self._values), len(values)
            self._unit[run] = unit
            self._values.extend(values)

    def get(self, run: int) -> tuple[int, tuple[float, ...]]:
        """The place of the unit, and the samples of a run: none if it has none."""
        where = self._where[run]
        return self._unit[run], tuple(self._values[where : where + self._count[run]])
