"""A published guide as runs in the spool's own schema: one run a board, of the kind `guide`."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from evmperf.judge.published import identity, record
from evmperf.judge.published.declared import AGAIN
from evmperf.measure.runs.history import GUIDE, StoredRun
from evmperf.measure.runs.spool import Spool, new_folder, read_run
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.facts import Facts
from evmperf.model.figures import Key, figures
from evmperf.model.records import UnknownRecord
from evmperf.model.results import Published, Result, Status
from evmperf.model.run import Run
from evmperf.model.units import counted
from evmperf.publish.guide import conditions
from evmperf_guides import artefacts, match, rows, rst, settle
from evmperf_guides.source import UNKNOWN_OS, Problem, ReadingNotes, Source, SourceTable, guides, system_of

PROFILE = "full"
NO_BOARD = "unknown-board"


@dataclass
class ImportedGuide(ReadingNotes):
    """What a guide holds. Counts are of the cells of its csv-tables (keys included); `dated` says whether the
    release is that of the date in its file's name.
    """

    file: str
    source: Source
    release: str
    os: str
    results: dict[str, list[Result]] = field(default_factory=dict)
    """Results by board."""
    matches: list[rows.TableRows | None] = field(default_factory=list)
    """What each table of the source is."""
    cells: int = 0
    sha256: str = ""
    dated: bool = False
    conditions: conditions.Conditions | None = None

    @property
    def unknown(self) -> list[Problem]:
        """What was not read."""
        return [problem for problem in self.problems if not problem.kept]

    @property
    def remarks(self) -> list[Problem]:
        """What was read and is doubtful."""
        return [problem for problem in self.problems if problem.kept]


def load(file: Path, release: str = "", os: str = "", board: str = "") -> list[ImportedGuide]:
    """Read the guides of a file; raises UsageError, with the line, for one that cannot be followed."""
    text = inputs.text(file, limits.GUIDE_BYTES)
    imported = interpret(text, str(file), release, os, board)
    first = imported[0]
    try:
        first.conditions = conditions.read(file, text)
    except UsageError as error:
        first.remark(1, f"{error}; not used")
    if kept := first.conditions:
        first.results = {board: [*kept.merged(board, of)] for board, of in first.results.items()}
    return imported


def interpret(
    text: str, name: str = "guide", release: str = "", os: str = "", board: str = ""
) -> list[ImportedGuide]:
    """The guides of a text, whose `release` and `os` are used where titles do not say them. Raises UsageError
    for one that states no release or has no table.
    """
    parts = guides(text.removeprefix("\ufeff"))  # a byte order mark
    return [_interpret(part, name, release, os, board) for part in parts]


def _interpret(text: str, name: str, release: str, os: str, board: str) -> ImportedGuide:
    source = rst.read(text, name)
    file, by_name = Path(name).name, system_of(Path(name).stem)
    by_date = "" if source.release or release else record.of_date(file)
    release = source.release or release or by_date
    if not release:
        raise UsageError(f"{name} line 1: the title states no release: name it with --release")
    if not source.tables:
        raise UsageError(f"{name} line 1: has no csv-table, so it is not a performance guide")
    system = source.os or by_name or os or UNKNOWN_OS
    digest = hashlib.sha256(text.encode()).hexdigest()
    imported = ImportedGuide(file, source, release, system, sha256=digest, dated=bool(by_date))
    named = settle.boards(source, board)
    if system == UNKNOWN_OS:
        imported.remark(1, "the operating system is unknown: name it with --os")
    for other, where in ((os, "--os"), (by_name, "the file's name")):
        if other not in ("", system):
            imported.remark(1, f"it names {system}, {where} names {other}: taken as {system}")
    if imported.dated:
        imported.remark(1, f"the release {release} follows from the date in the file's name")
    imported.problems += [*source.problems, *named.problems]
    witness = settle.Witness(system, file, release, named)
    fits = zip(source.tables, settle.tables(source.tables, witness), strict=True)
    imported.matches += [_read(imported, table, settled, witness) for table, settled in fits]
    witness.tables = [table for table in imported.matches if table]
    for table in witness.tables:
        rows.complete(table, witness.place)
    found = (one for table in witness.tables for one in _results(table))
    _keep(imported, ((board, result) for board, result in found if board not in named.misspelt))
    _doubts(imported)
    imported.problems.sort(key=lambda problem: problem.line)
    return imported


def _read(
    imported: ImportedGuide, source: SourceTable, settled: match.Settled, witness: settle.Witness
) -> rows.TableRows | None:
    """Read one table but for its short rows; None for a table that is not known, or of no known board."""
    count, named = sum(len(row.cells) for row in source.rows), witness.named
    imported.cells += count
    fit, why = settled.match, settled.why
    lone = headed = settle.headed(source, named)
    if fit and not fit.boards and not lone:
        lone = witness.board(source, fit)
        why = why if lone else "it names no board, and the guide has not exactly one: name it with --board"
    if fit is None or (not fit.boards and not lone):
        imported.refuse(Problem(source.line, why, source.text, table=True), count)
        return None
    for reason in filter(None, (why, *settle.remarks(source, fit, named, lone), fit.table.remark)):
        imported.remark(source.line, f"{fit.table.benchmark}: {reason}")
    if not fit.boards and lone != headed:
        # In a layout of several boards, a column without one would be nobody's.
        fit = replace(fit, columns=tuple(replace(column, board=lone) for column in fit.columns))
    return rows.read(rows.TableRows(source, fit, imported, imported.release, lone))


def _results(table: rows.TableRows) -> Iterator[tuple[str, Result]]:
    """Each row of a table as a result of each board that has figures in it."""
    declared = table.match.table
    for row in table.rows:
        for board in dict.fromkeys(board for board, _ in row.figures):
            result = Result(
                benchmark=declared.benchmark,
                version=0,  # measured by nobody's version of the module
                driver=declared.driver,
                case=row.case,
                params={},
                profile="quick" if table.source.is_quick(board) else PROFILE,
                status=Status.MEASURED,
                samples=(),
                tools={declared.tool: ""} if declared.tool else {},
                conditions={name: text for whose, name, text in row.words if whose == board},
                published=tuple(figure for whose, figure in row.figures if whose == board),
            )
            yield board, result


def _keep(imported: ImportedGuide, found: Iterable[tuple[str, Result]]) -> None:
    """Keep results, once where they are repeated; second values of a row make a row of their own."""
    printed: dict[tuple[str, str, str], list[Result]] = {}
    for board, result in found:
        printed.setdefault((board, result.benchmark, result.case), []).append(result)
    again: dict[tuple[str, int], list[int]] = {}
    for (board, benchmark, case), of_row in printed.items():
        values: dict[str, dict[tuple[float | None, ...], tuple[Published, Result]]] = {}
        for cell, result in ((cell, one) for one in of_row for cell in one.published):
            known, value = values.setdefault(cell.metric, {}), (cell.mean, cell.low, cell.high)
            same, _ = known.setdefault(value, (cell, result))
            (first, _), place = next(iter(known.values())), [*known].index(value)
            if same is not cell and same is first:
                again.setdefault((benchmark, cell.line), []).append(first.line)
            elif same is cell and place == 1:
                both = f"lines {first.line} and {cell.line}"
                reason = f"{case} {cell.metric} of {board} differs between {both}: both are kept"
                imported.remark(cell.line, reason)
            elif same is cell and place > 1:
                reason = f"{case} {cell.metric} of {board} appears a third time, with a third value"
                imported.refuse(Problem(cell.line, reason, cell.text), 1)
        for place, name in ((1, case + AGAIN), (0, case)):
            if cells := [[*known.values()][place] for known in values.values() if len(known) > place]:
                published = tuple(cell for cell, _ in cells)
                words = {title: text for _, one in cells for title, text in one.conditions.items()}
                joined = structs.replace(cells[0][1], case=name, conditions=words, published=published)
                imported.results.setdefault(board, []).append(joined)
    for (benchmark, line), earlier in again.items():
        imported.remark(line, f"{benchmark}: repeats the figures of line {min(earlier)}; they count once")


def _doubts(imported: ImportedGuide) -> None:
    """Note and remark on figures that others show to be wrong, by table and reason."""
    for board, results in imported.results.items():
        others = artefacts.beside(identity.board(board), imported.os)
        reasons = artefacts.doubts(figures(results), board, others, imported.release)
        imported.results[board] = [doubted(result, reasons) for result in results]
        lines: dict[tuple[str, str], list[int]] = {}
        for result in imported.results[board]:
            for cell in (cell for cell in result.published if cell.doubt):
                lines.setdefault((result.benchmark, cell.doubt), []).append(cell.line)
        for (benchmark, why), at in lines.items():
            many = counted(len(at), "figure")
            where = f"{many} of {board} (line{'s' * (len(set(at)) > 1)} {_lines(at)})"
            imported.remark(min(at), f"{benchmark}: {where}: {why}; kept and not judged")


def doubted(result: Result, reasons: Mapping[Key, str]) -> Result:
    """A result with the reasons for not judging its figures."""
    row = (result.benchmark, result.case)
    cells = (structs.replace(c, doubt=reasons.get(Key(*row, c.metric), "")) for c in result.published)
    return structs.replace(result, published=tuple(cells))


def _lines(numbers: Sequence[int]) -> str:
    """Line numbers as ranges: 4-7, 9."""
    ordered = sorted(set(numbers))
    runs = itertools.groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])
    parts = ([number for _, number in group] for _, group in runs)
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def store(imported: ImportedGuide, into: Path) -> list[Path]:
    """Write a run a board, over those of an earlier import; unknown lines go into the first board's."""
    unknown = [UnknownRecord(line=p.line, reason=p.reason, text=p.text) for p in imported.unknown]
    folders: list[Path] = []
    for board, results in (imported.results or {NO_BOARD: []}).items():
        run = run_of(imported, board)
        target = into / run.id
        before = read_run(target) if target.exists() else None
        if before and before.kind != GUIDE:
            raise UsageError(f"{target}: holds a measured run; import into another folder with --into")
        if before and run.os == UNKNOWN_OS and before.facts.guide != run.facts.guide:
            both = f"of {before.facts.guide}, and the operating system of {run.facts.guide} is unknown"
            raise UsageError(f"{target}: holds the figures {both}: name it with --os")
        with new_folder(into) as scratch:
            spool = Spool(scratch, run)
            spool.append(*results, *([] if folders else unknown))
            if target.exists():
                shutil.rmtree(target)
            spool.folder.rename(target)
        folders.append(target)
    return folders


def run_of(imported: ImportedGuide, board: str) -> Run:
    """The run that a guide's figures of one board are: of the same guide always of the same id."""
    facts = Facts.from_dict(imported.conditions.facts(board) if imported.conditions else {})
    facts.guide, facts.guide_sha256 = imported.file, imported.sha256
    facts.release_from = "date" if imported.dated else ""
    facts.unread_tables = imported.matches.count(None) or None
    return Run(
        id=f"{GUIDE}-{imported.release}-{imported.os}-{board}",
        board=board,
        profile=PROFILE,
        kind=GUIDE,
        release=imported.release,
        os=imported.os,
        exit_status=0,
        outcome="imported from a published guide",
        facts=facts,
    )


def stored(file: Path, board: str) -> StoredRun:
    """The figures that a guide has of a board; raises UsageError when it has none."""
    imported = load(file)[0]
    if board not in imported.results:
        names = ", ".join(sorted(imported.results)) or "no board"
        raise UsageError(f"{file}: has no figures of {board}, only of {names}")
    return StoredRun(run_of(imported, board), lambda: list(imported.results[board]))
