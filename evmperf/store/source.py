"""The store as a source of earlier runs."""

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evmperf.model import comparable
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.results import Result
from evmperf.model.run import Run
from evmperf.runs import spool
from evmperf.runs.history import GUIDE, StoredRun, Taken, by_age
from evmperf.store import files, rows
from evmperf.store.places import Bucket, StoreFolder, StorePlace, pattern

VARIABLE = "EVMPERF_HISTORY"
_AT_ONCE = 2000
"""Rows that are fetched at a time."""


def place(environment: Mapping[str, str]) -> StorePlace:
    """Where the lab's store is: EVMPERF_HISTORY, a folder or a URL, or in the user's own data."""
    own = environment.get(VARIABLE, "")
    if "://" in own:
        return Bucket(own)
    base = environment.get("XDG_DATA_HOME")
    data = Path(base) if base else Path.home() / ".local" / "share"
    return _converted(StoreFolder(Path(own).absolute() if own else data / "evmperf" / "history"))


def _converted(folder: StoreFolder) -> StoreFolder:
    """The folder, with the runs that an evmperf without a store has kept there taken in. Their
    files stay, in `converted/`.
    """
    for path in folder.root.glob("*/run.json"):
        old = path.parent
        try:
            files.add(folder, old)
        except UsageError as error:
            spool.leave_out(str(error))
            continue
        target = folder.root / "converted" / old.name
        with folder.errors():
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                with contextlib.suppress(FileNotFoundError):  # another process was first
                    old.rename(target)
    return folder


class StoredRuns:
    """The runs of a store, of all labs or of one; a RunSource."""

    def __init__(self, place: StorePlace, lab: str | None = None) -> None:
        self.place = place
        self.lab = lab

    def __str__(self) -> str:
        return str(self.place)

    def runs(self, board: str, limit: int | None = None) -> list[StoredRun]:
        """See RunSource. Raw files are not in the store."""
        found = self._stored(self._runs(board))
        mine = [entry for entry in found if entry.run.kind != GUIDE]
        return mine if limit is None else mine[max(0, len(mine) - limit) :]

    def everything(self) -> list[StoredRun]:
        """See RunSource."""
        return self._stored(self._runs(None))

    def _runs(self, board: str | None) -> list[Run]:
        wanted = "SELECT * EXCLUDE (samples, published, marks) FROM {rows} WHERE record = 'run' "
        wanted += "ORDER BY began_ns, run"
        return sorted((rows.to_run(row) for row in self._ask(board, wanted)), key=by_age)

    def _stored(self, runs: Sequence[Run]) -> list[StoredRun]:
        boards: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            boards.setdefault((run.lab, run.board), []).append(run)
        briefs = {
            (lab, board): BoardFigures(StoredRuns(self.place, lab), board, theirs)
            for (lab, board), theirs in boards.items()
        }
        return [
            StoredRun(
                run,
                functools.partial(self.results, run),
                brief=None if run.kind == GUIDE else functools.partial(briefs[run.lab, run.board].of, run),
            )
            for run in runs
        ]

    def results(self, run: Run) -> list[Result]:
        """The results of a run."""
        found = StoredRuns(self.place, run.lab)._ask(
            run.board,
            "SELECT * FROM {rows} WHERE record = 'result' AND run = $run ORDER BY number",
            run=run.id,
        )
        records = (rows.to_record(row) for row in found)
        return [record for record in records if isinstance(record, Result)]

    def _ask(self, board: str | None, question: str, **values: Any) -> list[dict[str, Any]]:
        return list(self.asked(board, question, **values))

    def asked(self, board: str | None, question: str, **values: Any) -> Iterator[dict[str, Any]]:
        """The rows that answer a question to {rows}, of one board or all, by name; see `batches`."""
        names: list[str] = []
        for batch in self.batches(board, question, names, **values):
            yield from (dict(zip(names, row, strict=True)) for row in batch)

    def batches(
        self, board: str | None, question: str, names: list[str], **values: Any
    ) -> Iterator[Sequence[tuple[Any, ...]]]:
        """The rows of an answer, a few thousand at a time, their names put into `names`.

        The question has an order: then the first row comes when all files were read, and damaged
        ones are known. Raises LabError.
        """
        with files.connection() as con:
            self.place.prepare(con)

            def work(there: files.Counting) -> list[tuple[Any, ...]]:
                if not there.files:
                    return []
                con.execute(question.replace("{rows}", files.counting(self.place, there)), values or None)
                return con.fetchmany(_AT_ONCE)

            some = files.reading(con, self.place, pattern(self.lab, board), work)
            names += [column[0] for column in con.description] if some else []
            while some:
                yield some
                some = con.fetchmany(_AT_ONCE)


class _Told(msgspec.Struct):
    """What judging needs of the rest of a result's row."""

    tools: dict[str, msgspec.Raw] = {}
    conditions: dict[str, msgspec.Raw] = {}


_Row = tuple[Any, ...]
_Figure = tuple[Key, str, Callable[[Sequence[float]], tuple[float, ...]]]
_FIGURES = """
SELECT run, benchmark, "case", driver, profile, version, rest,
to_json(list_transform(samples, lambda s: [s.metric, s.unit]))::VARCHAR AS names,
list_transform(samples, lambda s: s.value) AS numbers
FROM {rows} WHERE record = 'result' AND samples IS NOT NULL AND began_ns >= $since
ORDER BY began_ns, run, number
"""


class BoardFigures:
    """The figures of one board's runs; asked from the oldest on, they are read in one go."""

    def __init__(self, source: StoredRuns, board: str, runs: Sequence[Run]) -> None:
        self._source = source
        self._board = board
        self._order = {run.id: number for number, run in enumerate(sorted(runs, key=by_age))}
        self._reading = _Reading()
        self._groups: Iterator[tuple[str, Iterator[_Row]]] = iter(())
        self._at = len(self._order)
        self._waiting: tuple[str, Iterator[_Row]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_groups": iter(()), "_at": len(self._order), "_waiting": None}

    def of(self, run: Run) -> Iterator[Taken]:
        """The figures of a run; raises LabError."""
        wanted = self._order[run.id]
        if wanted < self._at:
            found = self._source.batches(self._board, _FIGURES, [], since=run.started_ns)
            rows_found = itertools.chain.from_iterable(found)
            self._groups = itertools.groupby(rows_found, key=operator.itemgetter(0))
            self._waiting = next(self._groups, None)
        self._at = wanted + 1
        while self._waiting and self._order.get(self._waiting[0], -1) < wanted:
            self._waiting = next(self._groups, None)
        if not self._waiting or self._waiting[0] != run.id:
            return iter(())
        return self._reading.taken(self._waiting[1])


class _Reading:
    """Makes figures of rows. Most rows say of a case what others said of it: that is read once."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._cases: dict[tuple[Any, ...], comparable.ComparableCase] = {}
        self._known: dict[_Row, tuple[comparable.ComparableCase, Sequence[_Figure]]] = {}

    def taken(self, of_run: Iterable[_Row]) -> Iterator[Taken]:
        """The figures of a run's rows."""
        for row in of_run:
            said, numbers = row[1:-1], row[-1]
            known = self._known.get(said)
            if known is None:
                if len(self._known) >= self._MOST:
                    self._known.clear()
                known = self._known[said] = self._read(said)
            case, figures = known
            for key, unit, take in figures:
                yield Taken(key, unit, take(numbers), case)

    def _read(self, said: _Row) -> tuple[comparable.ComparableCase, Sequence[_Figure]]:
        benchmark, label, driver, profile, version, rest, names = said
        told = msgspec.json.decode(rest, type=_Told)
        deciding = {n: bytes(told.conditions[n]) for n in comparable.DECIDING if n in told.conditions}
        alike = (driver, profile, version, tuple(told.tools), tuple(deciding.items()))
        case = self._cases.get(alike)
        if case is None:
            conditions = {name: msgspec.json.decode(text) for name, text in deciding.items()}
            case = comparable.ComparableCase(driver, profile, version, tuple(told.tools), conditions)
            self._cases[alike] = case
        places: dict[str, list[int]] = {}
        units = {}
        for number, (metric, unit) in enumerate(msgspec.json.decode(names, type=list[tuple[str, str]])):
            places.setdefault(metric, []).append(number)
            units[metric] = unit
        return case, [(Key(benchmark, label, m), units[m], _taking(at)) for m, at in places.items()]


def _taking(places: Sequence[int]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """What takes the numbers at some places."""
    first = places[0]
    return operator.itemgetter(*places) if len(places) > 1 else lambda numbers: (numbers[first],)
