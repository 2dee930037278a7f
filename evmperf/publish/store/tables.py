"""The store's tables for SQL: what a question may name, and nothing else."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from evmperf.measure.runs.history import RunSource, SpoolFolder
from evmperf.model.errors import UsageError
from evmperf.publish.store import files
from evmperf.publish.store.files import text
from evmperf.publish.store.places import StoreFolder, StorePlace, pattern
from evmperf.publish.store.source import StoredRuns

T = TypeVar("T")

_MEMORY = "1GB"
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
    rows: Sequence[tuple[Any, ...]]


@contextlib.contextmanager
def opened(source: RunSource) -> Iterator[StorePlace]:
    """The store of a source, or a temporary one of a folder of runs; raises UsageError for others."""
    if isinstance(source, StoredRuns):
        yield source.place
    elif isinstance(source, SpoolFolder):
        with tempfile.TemporaryDirectory(prefix="evmperf-store-") as folder:
            made = StoreFolder(Path(folder))
            for entry in source.runs():
                assert entry.folder
                files.add(made, entry.folder)
            yield made
    else:
        raise UsageError(f"{source}: is asked in its own language; name a folder or history")


def ask(place: StorePlace, question: str, most_s: float = 60.0) -> SqlAnswer:
    """The answer to one SELECT on `TABLES`, which may take so many seconds.

    Nothing else can be read, nothing written, no setting changed. Raises UsageError for what is no
    such question or takes too much time or memory, LabError when the store cannot be read.
    """

    def work(con: duckdb.DuckDBPyConnection) -> SqlAnswer:
        kinds = [one.type for one in con.extract_statements(question)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise UsageError("a question is one SELECT (or DESCRIBE, SHOW)")
        con.execute(question)
        found = con.fetchmany(_ROWS + 1)
        if len(found) > _ROWS:
            raise UsageError(f"the answer has more than {_ROWS} rows: add LIMIT, or `export`")
        return SqlAnswer([column[0] for column in con.description or ()], found)

    def watched(con: duckdb.DuckDBPyConnection) -> SqlAnswer:
        # DuckDB hears no signal while it works.
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work, con)
            try:
                return future.result(most_s)
            except TimeoutError:
                raise UsageError(f"no answer within {most_s:g} s: ask for less") from None
            finally:
                con.interrupt()

    return _working(place, watched)


def write(place: StorePlace, question: str, file: Path, form: str) -> None:
    """Write the answer to a question of our own to a file; `form` is parquet or csv."""

    def work(con: duckdb.DuckDBPyConnection) -> None:
        con.execute(f"COPY ({question}) TO {text(str(file))} (FORMAT {form}, USE_TMP_FILE false)")

    _working(place, work, file)


def _working(place: StorePlace, work: Callable[[duckdb.DuckDBPyConnection], T], *more: Path) -> T:
    def on(there: files.Counting) -> T:
        # Each question has its own connection, with its own limits.
        with files.connection(_MEMORY) as con:
            place.prepare(con)
            _define(con, place, there, more)
            try:
                return work(con)
            except _ASKED as error:
                raise UsageError(str(error)) from error

    with files.connection() as con:
        place.prepare(con)
        return files.reading(con, place, pattern(None, None), on)


def _define(
    con: duckdb.DuckDBPyConnection, place: StorePlace, there: files.Counting, more: Iterable[Path]
) -> None:
    nothing = f"(SELECT {files.NOTHING}, '' AS lab, '' AS board, 0 AS year LIMIT 0)"
    source = files.counting(place, there) if there.files else nothing
    con.execute(f"CREATE VIEW records AS SELECT * FROM {source}")
    con.execute(_SQL)
    allowed = ", ".join(text(name) for name in (*map(place.address, there.files), *map(str, more)))
    con.execute(f"SET allowed_paths = [{allowed}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
