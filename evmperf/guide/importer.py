"""A published guide as runs in the spool's own schema: one run a board, of the kind `guide`."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evmperf.guide import cells, match
from evmperf.guide.source import Row, Source, SourceTable, read
from evmperf.model.errors import UsageError
from evmperf.model.results import Published, Result, Status
from evmperf.model.run import Run
from evmperf.published.dialect import Dialect, of_release, seen_in
from evmperf.runs.history import GUIDE, StoredRun
from evmperf.runs.spool import Spool, new_folder, read_run, result_record

PROFILE = "full"
NO_BOARD = "unknown-board"


@dataclass(frozen=True)
class Problem:
    """Something in a guide that is not known, with its line, kept as it is in `text`."""

    line: int
    reason: str
    text: str = ""
    table: bool = False


@dataclass
class Imported:
    """What a guide holds. Counts are of csv-tables and their cells (keys included)."""

    file: str
    source: Source
    release: str
    os: str
    dialect: Dialect
    results: dict[str, list[Result]] = field(default_factory=dict)
    """Results by board."""
    matches: list[match.Match | None] = field(default_factory=list)
    """What each table of the source is."""
    problems: list[Problem] = field(default_factory=list)
    tables: int = 0
    rows: int = 0
    cells: int = 0
    unknown_cells: int = 0
    sha256: str = ""

    def summary(self) -> str:
        """One line for people."""
        return (
            f"{self.tables} tables, {self.cells} cells, {self.cells - self.unknown_cells} known, "
            f"{self.unknown_cells} unknown"
        )


def load(file: Path, release: str = "") -> Imported:
    """Read a guide; raises UsageError, with the line, for a file that cannot be followed."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise UsageError(f"{file} line {line}: is not UTF-8 text") from error
    return interpret(text, str(file), release)


def interpret(text: str, name: str = "guide", release: str = "") -> Imported:
    """The figures of a guide's text; `release` where its title does not say."""
    source = read(text, name)
    release = release or source.release
    if not release:
        raise UsageError(
            f"{name} line 1: the title states no release: say which one with --release"
        )
    os = source.os or "Linux"
    imported = Imported(Path(name).name, source, release, os, of_release(release, os))
    imported.sha256 = hashlib.sha256(text.encode()).hexdigest()
    imported.problems += [
        Problem(c.line, f"reStructuredText: {c.message}") for c in source.complaints
    ]
    lone = _lone_board(source)
    spellings: list[str] = []
    taken: dict[tuple[str, str, str, str], Published] = {}
    for table in source.tables:
        _take(imported, table, lone, spellings, taken)
    imported.dialect = seen_in(spellings) or imported.dialect
    imported.problems.sort(key=lambda problem: problem.line)
    return imported


def _lone_board(source: Source) -> str:
    """The board of tables that name none: the guide's only one."""
    boards = {
        board
        for table in source.tables
        for board, _ in map(match.split_header, table.header)
        if board
    }
    return next(iter(boards)) if len(boards) == 1 else ""


def _take(
    imported: Imported,
    source: SourceTable,
    lone: str,
    spellings: list[str],
    taken: dict[tuple[str, str, str, str], Published],
) -> None:
    """Take one table's figures."""
    imported.tables += 1
    imported.rows += len(source.rows)
    count = sum(len(row.cells) for row in source.rows)
    imported.cells += count
    try:
        found = match.identify(source)
        if not found.table.board_in_header and not lone:
            raise match.Unknown("it names no board, and the guide has not exactly one")
    except match.Unknown as unknown:
        imported.matches.append(None)
        imported.unknown_cells += count
        imported.problems.append(Problem(source.line, str(unknown), source.text, table=True))
        return
    imported.matches.append(found)
    boards = found.boards or (lone,)
    for row in source.rows:
        by_board: dict[str, list[Published]] = {board: [] for board in boards}
        case = match.row_key(row.cells, found.table)
        for board, cell in _row(imported, found, row, case, spellings):
            key = (board or lone, found.table.benchmark, case, cell.metric)
            before = taken.setdefault(key, cell)
            if before is cell:
                by_board[board or lone].append(cell)
            elif (before.mean, before.low, before.high) != (cell.mean, cell.low, cell.high):
                _unknown(imported, row, f"{case} {cell.metric} differs from line {before.line}", 1)
        for board, figures in by_board.items():
            if figures:
                imported.results.setdefault(board, []).append(_result(found, case, figures))


def _row(
    imported: Imported, found: match.Match, row: Row, case: str, spellings: list[str]
) -> Iterator[tuple[str, Published]]:
    """The figures of a row, by board; unknown ones are noted."""
    table = found.table
    keys = len(table.keys)
    if not match.knows_row(table, case):
        _unknown(imported, row, f"{table.benchmark} has no row {row.cells[0]!r}", len(row.cells))
        return
    unit_text = match.split_label("|".join(row.cells[:keys]), table)[1]
    if not match.unit_fits(table, case, unit_text):
        _unknown(
            imported, row, f"unit {unit_text!r} of {case} is not one known for it", len(row.cells)
        )
        return
    if unit_text is not None:
        spellings.append(unit_text)
    values = row.cells[keys:]
    if len(values) > len(found.columns):
        extra = len(values) - len(found.columns)
        _unknown(imported, row, f"{extra} cells more than the header", extra)
    for column, text in zip(found.columns, values, strict=False):
        if not text.strip():
            continue
        metric = table.metric(case, column.metric)
        if metric is None:
            _unknown(imported, row, f"{table.benchmark} has no metric {column.metric}", 1)
            continue
        try:
            cell = cells.parse(text, metric.name, metric.unit, table.decimals, row.line)
        except cells.CellError as error:
            _unknown(imported, row, f"{case} {column.metric}: {error}", 1)
            continue
        yield column.board, cell


def _unknown(imported: Imported, row: Row, reason: str, count: int) -> None:
    imported.unknown_cells += count
    imported.problems.append(Problem(row.line, reason, ",".join(f'"{c}"' for c in row.cells)))


def _result(found: match.Match, case: str, figures: list[Published]) -> Result:
    table = found.table
    return Result(
        benchmark=table.benchmark,
        version=0,  # measured by nobody's version of the module
        driver=table.driver,
        case=case,
        params={},
        profile=PROFILE,
        status=Status.MEASURED,
        samples=(),
        tools={table.tool: ""} if table.tool else {},
        published=tuple(figures),
    )


def run_id(imported: Imported, board: str) -> str:
    """The same guide makes the same runs, however often it is imported."""
    return f"{GUIDE}-{imported.release}-{imported.os}-{board}"


def store(imported: Imported, into: Path) -> list[Path]:
    """Write one run a board below `into`, in place of those of an earlier import.

    What is not known goes into the first board's run, as records `unknown`.
    """
    folders = []
    for number, board in enumerate(imported.results or {NO_BOARD: []}):
        problems = [] if number else imported.problems
        results = imported.results.get(board, [])
        folders.append(_store(into, run_of(imported, board), results, problems))
    return folders


def run_of(imported: Imported, board: str) -> Run:
    """The run that a guide's figures of one board are."""
    return Run(
        id=run_id(imported, board),
        board=board,
        profile=PROFILE,
        kind=GUIDE,
        release=imported.release,
        os=imported.os,
        exit_status=0,
        outcome="imported from a published guide",
        facts=_facts(imported),
    )


def _facts(imported: Imported) -> dict[str, Any]:
    return {"guide": imported.file, "guide_sha256": imported.sha256, "dialect": imported.dialect}


def _store(into: Path, run: Run, results: list[Result], problems: list[Problem]) -> Path:
    target = into / run.id
    if target.exists() and read_run(target).kind != GUIDE:
        raise UsageError(f"{target}: holds a measured run; import into another folder with --into")
    with new_folder(into) as scratch:
        spool = Spool(scratch, run)
        spool.append_all([*map(_short_record, results), *map(_unknown_record, problems)])
        if target.exists():
            shutil.rmtree(target)
        spool.folder.rename(target)
    return target


def _short_record(result: Result) -> Mapping[str, Any]:
    """A result without what published figures do not have, which would be most of its bytes."""
    record = {name: value for name, value in result_record(result).items() if value}
    return {
        **record,
        "version": result.version,
        "samples": [],
        "params": {},
        "published": [
            {name: value for name, value in cell.items() if value not in (None, "")}
            for cell in record["published"]
        ],
    }


def _unknown_record(problem: Problem) -> Mapping[str, Any]:
    return {
        "record": "unknown",
        "line": problem.line,
        "reason": problem.reason,
        "text": problem.text,
    }


def stored(file: Path, board: str) -> StoredRun:
    """The figures that a guide has of a board; raises UsageError when it has none."""
    imported = load(file)
    if board not in imported.results:
        known = ", ".join(sorted(imported.results))
        raise UsageError(f"{file}: has no figures of {board}, only of {known}")
    return StoredRun(run_of(imported, board), lambda: list(imported.results[board]))
