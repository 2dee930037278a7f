"""The store as a source of earlier runs."""

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from evmperf.measure.runs import spool
from evmperf.measure.runs.history import GUIDE, StoredRun, Taken, by_age
from evmperf.model import comparable, limits
from evmperf.model.alarm import MetricAlarm
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.results import Result
from evmperf.model.run import Run
from evmperf.publish.store import files, rows
from evmperf.publish.store.places import Bucket, StoreFolder, StorePlace, pattern

T = TypeVar("T")

VARIABLE = "EVMPERF_HISTORY"


def place(environment: Mapping[str, str]) -> StorePlace:
    """Where the lab's store is: EVMPERF_HISTORY, a folder or a URL; raises UsageError where it is neither."""
    named = environment.get(VARIABLE, "")
    if not named:
        raise UsageError(
            f"{VARIABLE} is not set: set it to the store's folder or URL, or give a folder of runs"
        )
    local = named.removeprefix("file://")
    if "://" in local:
        return Bucket(named)
    folder = Path(local).absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: {VARIABLE} names a file: set it to a folder or a URL")
    return StoreFolder(folder)


@dataclass(frozen=True)
class StoredRuns:
    """The runs of a store, of all labs or of one; a RunSource."""

    place: StorePlace
    lab: str | None = None

    def __str__(self) -> str:
        return str(self.place)

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See RunSource. Raw files are not in the store."""
        question = "SELECT * EXCLUDE (samples, published, marks) FROM {rows} WHERE record = 'run'"
        runs = sorted(self._sound(rows.to_run, self.asked(board, question)), key=by_age)
        figures = {
            (run.lab, run.board): BoardFigures(StoredRuns(self.place, run.lab), run.board) for run in runs
        }
        return [
            StoredRun(
                run,
                functools.partial(self.results, run),
                alarms=functools.partial(figures[run.lab, run.board].alarms_of, run),
                brief=None if run.kind == GUIDE else functools.partial(figures[run.lab, run.board].of, run),
            )
            for run in runs
            if board is None or run.kind != GUIDE
        ]

    def results(self, run: Run) -> list[Result]:
        """The results of a run."""
        records = StoredRuns(self.place, run.lab).asked(
            run.board,
            "SELECT * FROM {rows} WHERE record = 'result' AND run = $run ORDER BY number",
            run=run.id,
        )
        return [record for record in self._sound(rows.to_record, records) if isinstance(record, Result)]

    def _sound(
        self, read: Callable[[dict[str, object]], T], entries: Iterable[dict[str, object]]
    ) -> Iterator[T]:
        """What rows hold; those beyond the limits, or of another evmperf, are named and left out."""
        for row in entries:
            try:
                yield read(row)
            except msgspec.ValidationError as error:
                what = f"{row['run']} {row['record']} {row['number']}"
                spool.leave_out(f"{self}: {what}: is damaged: {error}")

    def parts(self) -> Iterator[tuple[str, str, int, Callable[[], list[StoredRun]]]]:
        """Each board as its lab, its name, its number of runs, and what reads them."""
        for lab, name, count in self.boards():
            yield lab, name, count, functools.partial(StoredRuns(self.place, lab).runs, name)

    def boards(self) -> list[tuple[str, str, int]]:
        """Each board as its lab, its name, and the number of its runs without guides and variations."""
        counts = self.asked(
            None,
            "SELECT lab, board, count(*) AS runs FROM {rows} WHERE record = 'run' AND "
            f"kind IS DISTINCT FROM '{GUIDE}' AND coalesce(facts->>'variation', '[]') = '[]' GROUP BY ALL",
        )
        return sorted((row["lab"], row["board"], row["runs"]) for row in counts)

    def asked(self, board: str | None, question: str, **values: Any) -> list[dict[str, Any]]:
        """The rows that answer a question to {rows}, of one board or all, by name; raises LabError."""
        with files.connection() as con:
            self.place.prepare(con)
            # One thread keeps the order of lists, and a site has a process for each core.
            con.execute("SET threads = 1")

            def work(contents: files.Counting) -> list[dict[str, object]]:
                if not contents.files:
                    return []
                con.execute(question.replace("{rows}", files.counting(self.place, contents)), values or None)
                names = [column[0] for column in con.description]
                return [dict(zip(names, row, strict=True)) for row in con.fetchall()]

            return files.reading(con, self.place, pattern(self.lab, board), work)


class _Conditions(msgspec.Struct):
    """What judging needs of the rest of a result's row."""

    tools: dict[str, msgspec.Raw] = {}
    conditions: dict[str, msgspec.Raw] = {}


_Figure = tuple[Key, str, list[tuple[float, ...]], comparable.ComparableCase]
"""One metric of a case: its samples in each run that has it."""
_FIGURES = Path(__file__).with_name("figures.sql").read_text("utf-8")


_ALARMS = (
    """SELECT run, benchmark, "case", rest FROM {rows} """
    """WHERE record = 'verdict' AND contains(rest, '"alarm":') ORDER BY number"""
)
_JUDGED = "SELECT DISTINCT run FROM {rows} WHERE record = 'verdict'"


class _ToldAlarm(msgspec.Struct):
    metric: str
    alarm: MetricAlarm


class BoardFigures:
    """The figures of one board's runs; asked from the oldest on, they are read in one go."""

    def __init__(self, source: StoredRuns, board: str) -> None:
        self._source = source
        self._board = board
        self._since_ns: int | None = None
        self._runs: dict[str, list[tuple[int, int, Sequence[_Figure]]]] = {}
        """By run: the place of each case in the run, and in the lists of its figures."""
        self._alarms: dict[str, dict[Key, MetricAlarm]] | None = None

    def of(self, run: Run) -> Iterator[Taken]:
        """The figures of a run; raises LabError."""
        if self._since_ns is None or run.started_ns < self._since_ns:
            self._read(run.started_ns)
        for _, at, figures in self._runs.get(run.id, ()):
            for key, unit, samples, case in figures:
                if None in samples[at]:
                    spool.leave_out(f"{self._source}: {run.id}: {key}: is beyond {limits.REAL:g}")
                else:
                    yield Taken(key, unit, samples[at], case)

    def alarms_of(self, run: Run) -> Mapping[Key, MetricAlarm] | None:
        """The alarms of a run's figures, None of a run that was not judged; raises LabError."""
        if self._alarms is None:
            self._alarms = {row["run"]: {} for row in self._source.asked(self._board, _JUDGED)}
            for row in self._source.asked(self._board, _ALARMS):
                entry = msgspec.json.decode(row["rest"], type=_ToldAlarm)
                key = Key(row["benchmark"], row["case"], entry.metric)
                self._alarms[row["run"]][key] = entry.alarm
        return self._alarms.get(run.id)

    def _read(self, since_ns: int) -> None:
        self._runs = {}
        cases: dict[tuple[object, ...], comparable.ComparableCase] = {}
        for row in self._source.asked(self._board, _FIGURES, since=since_ns):
            case = _case(row, cases)
            width = len(row["names"])
            columns = [row["numbers"][place::width] for place in range(width)]
            metrics: dict[str, list[list[float]]] = {}
            for (metric, _), column in zip(row["names"], columns, strict=True):
                metrics.setdefault(metric, []).append(column)
            units = dict(row["names"])
            figures = [
                (Key(row["benchmark"], row["case"], m), units[m], list(zip(*of, strict=True)), case)
                for m, of in metrics.items()
            ]
            for at, (run, place) in enumerate(zip(row["runs"], row["places"], strict=True)):
                self._runs.setdefault(run, []).append((place, at, figures))
        for of_run in self._runs.values():
            of_run.sort(key=operator.itemgetter(0))
        self._since_ns = since_ns


def _case(
    row: Mapping[str, Any], cases: dict[tuple[Any, ...], comparable.ComparableCase]
) -> comparable.ComparableCase:
    """What a row's figures were measured under; the same object for what is alike."""
    measured = msgspec.json.decode(row["rest"], type=_Conditions)
    deciding = {n: bytes(measured.conditions[n]) for n in comparable.DECIDING if n in measured.conditions}
    alike = (row["driver"], row["profile"], row["version"], tuple(measured.tools), tuple(deciding.items()))
    if alike not in cases:
        conditions = {name: msgspec.json.decode(text) for name, text in deciding.items()}
        cases[alike] = comparable.ComparableCase(*alike[:4], conditions)
    return cases[alike]
