"""Writing the store: a file a run, joined into one a board and year, by any number of writers.

There is no list of what counts: the files say it themselves.

* A run's file is written aside and put in place when it is whole. It never changes; a run that is
  kept again is a further file.
* Of a run in several files, the one that was kept last counts (`Counting`).
* A file of which nothing counts any more is removed an hour after what took its place came: who
  reads has it for so long. Whoever is killed in the middle leaves at most such a file.
"""

import contextlib
import functools
import hashlib
import itertools
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import duckdb

from evmperf.measure.runs.folders import cache_dir
from evmperf.measure.runs.spool import leave_out
from evmperf.model.errors import LabError, UsageError
from evmperf.publish.store import rows
from evmperf.publish.store.places import StorePlace, named, partition

_FEW = 8
"""Files of one board and year that are read as they are."""
_READ_S = 3600.0
"""For how long somebody may read what he has found."""
_SPILLED_S = 86_400.0
"""The age from which spilled data is nobody's: no command reads the store for so long."""
_MEMORY = "256MB"
_COPY = "(FORMAT parquet, USE_TMP_FILE false, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 20480)"
NOTHING = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in rows.COLUMNS.items())
_ORDER = 'ORDER BY record, benchmark, "case", began_ns, run, number'
"""Runs come first for who lists them, then what is asked for together lies together."""


T = TypeVar("T")


@dataclass(frozen=True)
class Counting:
    """What counts: files, and of these the runs of which another file has a later version."""

    files: Sequence[str]
    passed: Sequence[tuple[str, str]] = ()
    """Pairs of a file and a run."""
    removable: Sequence[str] = ()
    """Files of which nothing counts, and nobody reads any more."""


@contextlib.contextmanager
def connection(memory: str = _MEMORY) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB without network, which spills at most 4 GB."""
    options: dict[str, Any] = {
        "memory_limit": memory,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": str(_spilling()),
        "max_temp_directory_size": "4GB",
    }
    with duckdb.connect(config=options) as con:
        yield con


def _spilling() -> Path:
    """A folder that DuckDB makes and removes (/tmp may be memory); what killed commands left goes."""
    for left in cache_dir().glob("spilled-" + "[0-9a-f]" * 16):
        # EVMPERF_CACHE may be anybody's folder: nothing goes but DuckDB's own files.
        with contextlib.suppress(OSError):
            if not left.is_symlink() and left.stat().st_mtime < time.time() - _SPILLED_S:
                for file in left.glob("duckdb_temp_*"):
                    file.unlink()
                left.rmdir()
    return cache_dir() / f"spilled-{secrets.token_hex(8)}"


def content(con: duckdb.DuckDBPyConnection, place: StorePlace, files: Iterable[str]) -> Counting:
    """What counts of some whole partitions; raises duckdb.Error for a file that is torn."""
    counting: list[str] = []
    passed: list[tuple[str, str]] = []
    removable: list[str] = []
    for _, group in itertools.groupby(sorted(files), key=lambda name: name.rpartition("/")[0]):
        names = list(group)
        if len(names) == 1:
            counting += names
            continue
        held = {name: dict(_held(con, place, name)) for name in names}
        last: dict[str, tuple[int, str]] = {}
        for name, runs in held.items():
            for run, kept_ns in runs.items():
                last[run] = max(last.get(run, (0, "")), (kept_ns, name))
        since_ns = time.time_ns() - int(_READ_S * 1e9)
        for name, runs in held.items():
            lost = [run for run in runs if last[run][1] != name]
            if len(lost) < len(runs):
                counting.append(name)
                passed += [(name, run) for run in lost]
            elif all(_made_ns(last[run][1]) < since_ns for run in runs):
                removable.append(name)
    return Counting(counting, passed, removable)


def _held(con: duckdb.DuckDBPyConnection, place: StorePlace, name: str) -> Iterable[tuple[str, int]]:
    """The runs of a file (of a single one a stand-in for its id), and when they were kept."""
    kind, made, what = PurePosixPath(name).stem.split("-", 2)
    if kind == "one":
        return [(what[:32], int(made))]
    pairs = con.execute(f"SELECT run, kept_ns FROM {scan(place, [name])} WHERE record = 'run'").fetchall()
    return [(stand_in(run), kept_ns) for run, kept_ns in pairs]


def _made_ns(name: str) -> int:
    return int(PurePosixPath(name).stem.split("-", 2)[1])


def stand_in(run: str) -> str:
    """What a file's name has instead of a run's id."""
    return hashlib.sha256(run.encode()).hexdigest()[:32]


def scan(place: StorePlace, names: Sequence[str]) -> str:
    """What to select from for some files."""
    quoted = ", ".join(text(glob_free(place.address(name))) for name in names)
    return (
        f"read_parquet([{quoted}], hive_partitioning=true, filename=true, "
        "hive_types={'lab': VARCHAR, 'board': VARCHAR, 'year': INTEGER})"
    )


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def reading(
    con: duckdb.DuckDBPyConnection, place: StorePlace, pattern: str, work: Callable[[Counting], T]
) -> T:
    """Do something with what counts of the files that match. Files that are torn are named and left
    out, and looked for anew where others have joined them meanwhile.

    Raises LabError when they cannot be read, and what `work` raises.
    """
    torn: set[str] = set()
    while True:
        names = [name for name in place.files(pattern) if name not in torn]
        try:
            if flawed := {name for name in names if _is_flawed(place, name)}:
                torn |= flawed
                continue
            return work(content(con, place, names))
        except (duckdb.Error, FileNotFoundError) as error:
            damaged = {name for name in names if _is_torn(con, place, name)}
            if not damaged and set(names) <= set(place.files(pattern)):
                raise LabError(f"{place}: cannot be read: {first(error)}") from error
            torn |= damaged


def _is_flawed(place: StorePlace, name: str) -> bool:
    if flaw := place.flaw(name):
        leave_out(f"{place.address(name)}: {flaw}; {_AGAIN}")
    return bool(flaw)


def _is_torn(con: duckdb.DuckDBPyConnection, place: StorePlace, name: str) -> bool:
    try:
        con.execute(f"SELECT bit_xor(hash(COLUMNS(*))) FROM {scan(place, [name])}").fetchall()
        columns, ours = (
            dict(row[:2] for row in con.execute(f"DESCRIBE {what}").fetchall())
            for what in (f"FROM {scan(place, [name])}", f"SELECT {NOTHING}")
        )
        other = [column for column, kind in ours.items() if columns.get(column) != kind]
        why = f"its column {other[0]} is none of ours" if other else ""
    except duckdb.Error as error:
        if name not in place.files(glob_free(name)):
            return False
        why = first(error)
    if why:
        leave_out(f"{place.address(name)}: is damaged ({why}); {_AGAIN}")
    return bool(why)


_AGAIN = "remove it, and keep its runs again from their folders with `evmperf store add`"


def add(place: StorePlace, folder: Path) -> bool:
    """Keep the run in a folder; False when it is there as it is. A kill at any time leaves what was
    there before, or that and the run.

    Raises UsageError for no run or one that does not fit, LabError when it cannot be written.
    """
    run, records = rows.of_run(folder)
    where = partition(run)
    with connection() as con, tempfile.NamedTemporaryFile(suffix=".json") as file:
        own = next(records)
        (line,) = rows.lines([own])
        hashed, longest = hashlib.sha256(line), len(line)
        for line in rows.lines(records):
            hashed.update(line)
            longest = max(longest, len(line))
            file.write(line)
        digest = hashed.hexdigest()
        place.prepare(con)
        digest_before, last_ns, files = reading(
            con, place, f"{where}/*.parquet", functools.partial(_kept_digest, con, place, run.id)
        )
        if digest == digest_before:
            return False
        # The clock that the last version was kept by may have been ahead.
        kept_ns = max(time.time_ns(), last_ns + 1)
        file.writelines(rows.lines([own | {"kept_ns": kept_ns, "digest": digest}]))
        file.flush()
        with place.scratch() as scratch:
            _pack(con, place, file.name, longest, scratch)
            place.put(scratch, named(f"one-{kept_ns:020}-{stand_in(run.id)}", where, scratch))
        if files >= _FEW:
            tidy(con, place, where)
    return True


def gather(place: StorePlace, folders: Iterable[Path]) -> None:
    """Keep the runs of many folders in an empty store at once, a file a partition. What holds no run is
    named and left out; raises LabError when it cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="evmperf-store-") as aside, connection() as con:
        parts: dict[str, tuple[Path, int]] = {}
        for folder in folders:
            try:
                run, records = rows.of_run(folder)
                where = partition(run)
                file, longest = parts.get(where, (Path(aside, str(len(parts))), 0))
                with file.open("ab") as lines_file:
                    before = lines_file.tell()
                    try:
                        for line in rows.lines(records):
                            longest = max(longest, len(line))
                            lines_file.write(line)
                    except UsageError:
                        lines_file.truncate(before)
                        raise
            except UsageError as error:
                leave_out(str(error))
            else:
                parts[where] = file, longest
        for where, (file, longest) in parts.items():
            with place.scratch() as scratch:
                _pack(con, place, str(file), longest, scratch)
                file.unlink()
                place.put(scratch, named(_some(1), where, scratch))


def _pack(con: duckdb.DuckDBPyConnection, place: StorePlace, lines: str, longest: int, scratch: Path) -> None:
    """Write lines of JSON, of at most `longest` bytes, as a file of the store; raises LabError."""
    columns = ", ".join(f'"{k}": {text(v)}' for k, v in rows.COLUMNS.items())
    source = (
        f"read_json({text(glob_free(lines))}, format='newline_delimited', "
        f"columns={{{columns}}}, maximum_object_size={max(longest + 1000, 1 << 20)})"
    )
    try:
        _copy(con, f"SELECT * FROM {source} {_ORDER}", scratch)
    except duckdb.Error as error:
        raise LabError(f"{place}: takes no run: {first(error)}") from error


def glob_free(name: str) -> str:
    """A name in which DuckDB sees no pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _kept_digest(
    con: duckdb.DuckDBPyConnection, place: StorePlace, run: str, contents: Counting
) -> tuple[str, int, int]:
    """The digest of a run as it is in the store ("": it is not), when it was kept, and the number of files
    there.
    """
    if not contents.files:
        return "", 0, 0
    newest = con.execute(
        f"SELECT digest, kept_ns FROM {counting(place, contents)} WHERE record = 'run' AND run = $1", [run]
    ).fetchall()
    return *(newest[0] if newest else ("", 0)), len(contents.files)


def counting(place: StorePlace, contents: Counting) -> str:
    """What to select from for the rows that count."""
    source = scan(place, contents.files)
    if not contents.passed:
        return source
    runs: dict[str, list[str]] = {}
    for name, run in contents.passed:
        runs.setdefault(name, []).append(text(run))
    gone = " OR ".join(
        f"(filename = {text(place.address(name))} AND left(sha256(run), 32) IN ({', '.join(of)}))"
        for name, of in runs.items()
    )
    return f"(SELECT * FROM {source} WHERE NOT ({gone}))"


def tidy(con: duckdb.DuckDBPyConnection, place: StorePlace, where: str) -> None:
    """Join the files of a partition into one, and remove what nobody reads any more."""

    def join(contents: Counting) -> None:
        for name in contents.removable:
            place.remove(name)
        if len(contents.files) < 2:
            return
        names = ", ".join(f'"{name}"' for name in rows.COLUMNS)
        with place.scratch() as scratch:
            _copy(con, f"SELECT {names} FROM {counting(place, contents)} {_ORDER}", scratch)
            place.put(scratch, named(_some(len(contents.files)), where, scratch))

    reading(con, place, f"{where}/*.parquet", join)


def _some(files: int) -> str:
    return f"some-{time.time_ns():020}-{files:06}-{secrets.token_hex(8)}"


def _copy(con: duckdb.DuckDBPyConnection, select: str, scratch: Path) -> None:
    """Write what a query selects, and read it back: what was joined is removed one day."""
    con.execute(f"COPY ({select}) TO {text(str(scratch))} {_COPY}")
    con.execute(f"SELECT bit_xor(hash(COLUMNS(*))) FROM read_parquet({text(glob_free(str(scratch)))})")


def first(error: Exception) -> str:
    """The first line of what DuckDB says."""
    return str(error).splitlines()[0][:300]
