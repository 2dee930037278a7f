"""The figures of a run in a few points, written at its end: all that judging needs of them.

A year of nights has a quarter of a million samples and more. InfluxDB reads their fields one by
one, which takes it a minute; what a run measured does not change any more when the run has ended,
so the figures are put together once, when they are stored.

A point has the figures of one benchmark (in several `part`s where a text would be too long), as
JSON: a list of [driver, profile, version, tools, conditions, figures], where figures is a list of
[case, metric, unit, samples].
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from evmperf.influx.client import Store
from evmperf.model import comparable
from evmperf.model.figures import Key
from evmperf.model.outlets import TEXT_LIMIT
from evmperf.model.results import Result
from evmperf.model.run import Run
from evmperf.model.schema import Record
from evmperf.runs.history import Taken
from evmperf.runs.measurements import BRIEF

_SELECT = (
    f'SELECT "run", "benchmark", "figures" FROM "{BRIEF}" '
    'WHERE "board" = $board AND time >= {first} AND time <= {last}'
)


class _Figure(msgspec.Struct, array_like=True):
    case: str
    metric: str
    unit: str
    samples: tuple[float, ...]


class _Alike(msgspec.Struct, array_like=True):
    """Figures of one benchmark that were measured under the same conditions."""

    driver: str
    profile: str
    version: int
    tools: tuple[str, ...]
    conditions: dict[str, Any]
    figures: list[_Figure]


class Text(NamedTuple):
    """What one point says."""

    benchmark: str
    part: int
    figures: str


class Figures:
    """The figures of a run while its records are read; of one measured twice, the later."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, str], tuple[Result, str]]] = {}

    def add(self, record: Record) -> None:
        """Take in a record's samples, if it is a result."""
        if not isinstance(record, Result):
            return
        for sample in record.samples:
            of_benchmark = self._found.setdefault(record.benchmark, {})
            of_benchmark[record.case, sample.metric] = (record, sample.unit)

    def texts(self) -> Iterator[Text]:
        """What is stored of them; one empty text of a run without figures, which says so."""
        if not self._found:
            yield Text("", 0, "[]")
        for benchmark, figures in self._found.items():
            entries = [(result, metric, unit) for (_, metric), (result, unit) in figures.items()]
            for part, text in enumerate(_parts(entries)):
                yield Text(benchmark, part, text)


_Entry = tuple[Result, str, str]
"""A result, and a metric of it with its unit."""


def _parts(entries: Sequence[_Entry]) -> Iterator[str]:
    text = _encode(entries)
    if len(text.encode()) <= TEXT_LIMIT:
        yield text
    elif len(entries) > 1:
        half = len(entries) // 2
        yield from _parts(entries[:half])
        yield from _parts(entries[half:])
    else:
        # The samples themselves are stored with all others; a verdict takes their median.
        yield _encode(entries, statistics.median)


def _encode(entries: Iterable[_Entry], shorten: Callable[[Sequence[float]], float] | None = None) -> str:
    alike: dict[bytes, _Alike] = {}
    for result, metric, unit in entries:
        known = result.conditions
        conditions = {name: known[name] for name in comparable.DECIDING if name in known}
        under = (result.driver, result.profile, result.version, tuple(result.tools), conditions)
        group = alike.setdefault(msgspec.json.encode(under), _Alike(*under, []))
        samples = tuple(result.values(metric))
        kept = (shorten(samples),) if shorten else samples
        group.figures.append(_Figure(result.case, metric, unit, kept))
    return msgspec.json.encode(list(alike.values())).decode()


class _Row(NamedTuple):
    time_ns: int
    run: str
    benchmark: str | None
    figures: str


class Briefs:
    """The figures of one board's runs. Asked for from the oldest to the newest they are read in one
    go, and one run's are held at a time.
    """

    def __init__(self, store: Store, runs: Sequence[Run]) -> None:
        self._store = store
        self._last_ns = max((run.started_ns for run in runs), default=0)
        self._rows: Iterator[_Row] = iter(())
        self._next: _Row | None = None
        self._from_ns = math.inf
        """Rows of runs that began earlier have gone by."""

    def of(self, run: Run) -> Iterator[Taken] | None:
        """The figures of a run, None where only its records are stored; raises StoreError."""
        if run.started_ns < self._from_ns:
            self._select(run)
        texts = []
        while self._next and self._next.time_ns <= run.started_ns:
            if self._next.run == run.id:
                texts.append(self._next)
            self._next = next(self._rows, None)
        self._from_ns = run.started_ns + 1
        return _taken(texts) if texts else None

    def _select(self, run: Run) -> None:
        query = _SELECT.format(first=run.started_ns, last=self._last_ns)
        found = self._store.select(query, _Row, board=run.board)
        self._rows = (row for series in found for row in series.values)
        self._next = next(self._rows, None)


def _taken(rows: Iterable[_Row]) -> Iterator[Taken]:
    known: dict[bytes, comparable.Case] = {}
    for row in rows:
        for alike in msgspec.json.decode(row.figures, type=list[_Alike]):
            under = (alike.driver, alike.profile, alike.version, alike.tools, alike.conditions)
            case = known.setdefault(msgspec.json.encode(under), comparable.Case(*under))
            for figure in alike.figures:
                key = Key(row.benchmark or "", figure.case, figure.metric)
                yield Taken(key, figure.unit, figure.samples, case)
