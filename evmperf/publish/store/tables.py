"""The store's tables for SQL: what a question may name, and nothing else."""

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb

from evmperf.measure.runs.history import RunSource, SpoolFolder
from evmperf.model.errors import UsageError
from evmperf.publish.store import files
from evmperf.publish.store.files import text
from evmperf.publish.store.places import StoreFolder, StorePlace, pattern
from evmperf.publish.store.source import StoredRuns

T = TypeVar("T")

MOST_BYTES = 1_000_000_000
"""Of memory for a question, its answer included."""
_MEMORY = "600MB"
"""DuckDB's part of it."""
_TELL_S = 2.0
_ROWS = 1_000_000
_ASKED = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.DataError,
    duckdb.NotSupportedError,
    duckdb.PermissionException,
    duckdb.OutOfMemoryException,
)
"""What is wrong with a question, and not with the store."""
_SQL = Path(__file__).with_name("tables.sql").read_text("utf-8")
TABLES = re.findall(r"^CREATE VIEW (\w+)", _SQL, re.MULTILINE)


@dataclass(frozen=True)
class SqlAnswer:
    """What a question brought."""

    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]]


@contextlib.contextmanager
def opened(source: RunSource, tell: Callable[[str], None] = lambda sentence: None) -> Iterator[StorePlace]:
    """The store of a source, or a temporary one of a folder of runs, whose reading is told of every few
    seconds; raises UsageError for others.
    """
    if isinstance(source, StoredRuns):
        yield source.place
    elif isinstance(source, SpoolFolder):
        with tempfile.TemporaryDirectory(prefix="evmperf-store-") as folder:
            made = StoreFolder(Path(folder))
            files.gather(made, _with_progress([e.folder for e in source.runs() if e.folder], tell))
            yield made
    else:
        raise UsageError(f"{source}: is asked in its own language; name a folder or history")


def _with_progress(folders: Sequence[Path], tell: Callable[[str], None]) -> Iterator[Path]:
    """The folders one by one, telling every few seconds how many there were."""
    last = time.monotonic()
    for number, folder in enumerate(folders):
        if time.monotonic() - last > _TELL_S:
            last = time.monotonic()
            tell(f"{number} of {len(folders)} runs are read")
        yield folder


def ask(place: StorePlace, question: str) -> SqlAnswer:
    """The answer to one SELECT on `TABLES`. Nothing else can be read, nothing written, no setting changed.
    Raises UsageError for what is no such question or has too large an answer, LabError when the store cannot
    be read. DuckDB hears no signal while it works: see `limited`.
    """

    def work(con: duckdb.DuckDBPyConnection) -> SqlAnswer:
        kinds = [one.type for one in con.extract_statements(question)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise UsageError("a question is one SELECT (or DESCRIBE, SHOW)")
        con.execute(question)
        rows = con.fetchmany(_ROWS + 1)
        if len(rows) > _ROWS:
            raise UsageError(f"the answer has more than {_ROWS} rows: add LIMIT, or `export`")
        return SqlAnswer([column[0] for column in con.description or ()], rows)

    return _working(place, work)


def write(place: StorePlace, question: str, file: Path, form: str) -> None:
    """Write the answer to a question of our own to a file; `form` is parquet or csv."""

    def work(con: duckdb.DuckDBPyConnection) -> None:
        con.execute(f"COPY ({question}) TO {text(str(file))} (FORMAT {form}, USE_TMP_FILE false)")

    _working(place, work, file)


def _working(place: StorePlace, work: Callable[[duckdb.DuckDBPyConnection], T], *more: Path) -> T:
    def on(contents: files.Counting) -> T:
        # Each question has its own connection, with its own limits.
        with files.connection(_MEMORY) as con:
            place.prepare(con)
            _define(con, place, contents, more)
            try:
                return work(con)
            except _ASKED as error:
                raise UsageError(str(error)) from error

    with files.connection() as con:
        place.prepare(con)
        return files.reading(con, place, pattern(None, None), on)


def _define(
    con: duckdb.DuckDBPyConnection, place: StorePlace, contents: files.Counting, more: Iterable[Path]
) -> None:
    nothing = f"(SELECT {files.NOTHING}, '' AS lab, '' AS board, 0 AS year LIMIT 0)"
    source = files.counting(place, contents) if contents.files else nothing
    con.execute(f"CREATE VIEW records AS SELECT * FROM {source}")
    con.execute(_SQL)
    allowed = ", ".join(text(name) for name in (*map(place.address, contents.files), *map(str, more)))
    con.execute(f"SET allowed_paths = [{allowed}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
