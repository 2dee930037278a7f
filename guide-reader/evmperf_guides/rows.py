"""The rows of a known table to figures. What cannot be vouched for is not read: a row of another
width than its header is refused whole, as its cells may be anybody's, but for what a witness has seen.
"""

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from evmperf.judge.published.declared import ROW_UNITS, MatchedColumn, Table
from evmperf.model.results import Published
from evmperf.model.stats import figure_text
from evmperf.model.units import Unit
from evmperf_guides.match import Match, row_key
from evmperf_guides.source import GuideRow, Problem, SourceTable

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_CELL = re.compile(
    rf"(?P<about>~?)(?P<mean>{_NUMBER})"
    rf"(?: \(min (?P<low>{_NUMBER}), max (?P<high>{_NUMBER})\))?"
    r"(?: (?P<unit>[A-Za-z]+/s)|%)?"
)
_EXTRA = re.compile(r" \[[^\]]*\]$")
"""What `evmperf guide --with` adds to a figure."""
_CELL_BYTES = {"kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9}
"""Units that cells carry themselves, in bytes per second."""
_UNIT_BYTES = {Unit.KILOBYTE_PER_SECOND: 1e3, Unit.MEGABYTE_PER_SECOND: 1e6}


class CellError(ValueError):
    """A cell that is not a figure; its text says why."""


def figure(text: str, metric: str, unit: Unit, decimals: int = 2, line: int = 0) -> Published:
    """The figure in a cell, with text that does not follow from the numbers; raises CellError for none."""
    text = _EXTRA.sub("", text)
    match = _CELL.fullmatch(text.strip())
    if not match:
        raise CellError(f"{text!r} is not a figure")
    mean = float(match["mean"])
    low, high = (float(match[name]) if match[name] else None for name in ("low", "high"))
    if printed := match["unit"]:
        if printed.lower() not in _CELL_BYTES or unit not in _UNIT_BYTES:
            raise CellError(f"unit {printed!r} in a cell measured in {unit}")
        mean *= _CELL_BYTES[printed.lower()] / _UNIT_BYTES[unit]
    if low is not None and high is not None and not low <= mean <= high:
        raise CellError(f"{text!r}: the mean is not between its bounds")
    plain = figure_text(mean, low, high, decimals) == text
    return Published(metric, str(unit), mean, low, high, "" if plain else text, line)


def decimals(text: str) -> int:
    """How many decimals the first number of a cell has."""
    match = _CELL.match(text.strip())
    return len(match["mean"].partition(".")[2]) if match else 0


@dataclass(frozen=True)
class Read:
    """One row that was read: figures by board, and what its columns of words say."""

    case: str
    row: GuideRow
    figures: tuple[tuple[str, Published], ...]
    words: tuple[tuple[str, str, str], ...] = ()
    """Board, name and text."""


@dataclass
class TableRows:
    """What was read of a known table, what was not, and how many cells that is."""

    match: Match
    rows: list[Read] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unknown_cells: int = 0

    def refuse(self, row: GuideRow, reason: str, count: int) -> None:
        """Note what is not read."""
        self.unknown_cells += count
        text = ",".join(f'"{cell}"' for cell in row.cells)
        self.problems.append(Problem(row.line, reason, text))

    def remark(self, line: int, reason: str) -> None:
        """Note what is read and doubtful."""
        self.problems.append(Problem(line, reason, kept=True))


Spread = Callable[[Match, str, Sequence[str], Sequence[Read]], tuple[Sequence[str], str]]
"""Puts the cells of a short row into its columns, and says how it knows; [] and "" where it does not."""


def read(
    source: SourceTable,
    match: Match,
    release: str,
    without: Sequence[str] = (),
    spread: Spread = lambda match, case, cells, others: ((), ""),
) -> TableRows:
    """Read a table's rows; columns of the boards `without` are left out."""
    done, keys = TableRows(match), len(match.table.keys)
    short = [row for row in source.rows if 0 < len(row.cells) - keys < len(match.columns)]
    for printed in (*(row for row in source.rows if row not in short), *short):
        row = printed
        if row.error:
            done.refuse(row, row.error, 1)
            continue
        case, unit = row_key(row.cells, match.table)
        if row in short:
            placed, how = spread(match, case, row.cells[keys:], done.rows)
            if placed:
                done.remark(row.line, f"the row {case!r} lacks cells: the others are put into columns {how}")
                left = sum(map(bool, row.cells[keys:])) - sum(map(bool, placed))
                if left:
                    done.refuse(row, f"the row {case!r} lacks cells: the board of {left} is unknown", left)
                row = replace(row, cells=(*row.cells[:keys], *placed))
        if reason := _refusal(match, row, case, unit, release):
            done.refuse(row, reason, len(row.cells))
        else:
            done.rows.append(_row(match, row, case, without, done))
    done.rows.sort(key=lambda read: read.row.line)
    _order(source, match, done)
    _gaps(match, done)
    return done


def _refusal(match: Match, row: GuideRow, case: str, unit: str | None, release: str) -> str:
    """Why a row is not read at all; "" if it is, and if all its cells are empty."""
    table, width = match.table, len(match.table.keys) + len(match.columns)
    is_short = len(row.cells) < width and (release, case) in table.short_rows
    empty = len(row.cells) < width and not any(row.cells[len(table.keys) :])
    if len(row.cells) != width and not is_short and not empty:
        than = f"{'more' if len(row.cells) > width else 'fewer'} than the {width} of its header"
        return f"the row has {len(row.cells)} cells, {than}: their board is unknown"
    if not table.knows(case):
        near = difflib.get_close_matches(case, [*table.cases, *table.labels], n=1, cutoff=0.8)
        hint = f"; did it mean {near[0]!r}?" if near else ""
        return f"{table.benchmark} has no row {case!r}{hint}"
    known = table.row_unit(case)
    if table.units_in_labels and (unit is None or known is None or unit.lower() not in ROW_UNITS[known]):
        return f"unit {unit!r} of {case} is unknown for it"
    return ""


def _row(match: Match, row: GuideRow, case: str, without: Sequence[str], done: TableRows) -> Read:
    """The figures of a row, by board; cells that are none are noted."""
    taken, words = [], []
    for column, text in zip(match.columns, row.cells[len(match.table.keys) :], strict=False):
        if text.strip().lower() in ("", "n/a") or column.board in without:
            continue
        if column.words:
            words.append((column.board, column.metric, text.strip()))
            continue
        try:
            taken += [(column.board, figure) for figure in figures(match.table, column, case, text, row.line)]
        except CellError as error:
            done.refuse(row, f"{case} {column.metric}: {error}", 1)
    table = match.table
    for _, one in taken if not (table.unit_in_cell or table.free_decimals) else ():
        if one.text and decimals(one.text) != table.decimals:
            # A point may have been lost.
            others = f"with {table.decimals} decimals as the others are"
            done.remark(one.line, f"{case} {one.metric}: {one.text!r} is not printed {others}")
    return Read(case, row, tuple(taken), tuple(words))


def figures(table: Table, column: MatchedColumn, case: str, text: str, line: int) -> Iterator[Published]:
    """The figures of one cell; raises CellError."""
    names, texts = [column.metric], [text]
    if column.listed:
        texts = text.split(",")
        names = [column.metric.replace("{n}", str(number)) for number in range(len(texts))]
    for name, one in zip(names, texts, strict=True):
        metric = table.metric(case, name)
        if metric is None:
            raise CellError(f"{table.benchmark} has no metric {name}")
        yield figure(one, metric.name, metric.unit, table.decimals, line)


def _order(source: SourceTable, match: Match, done: TableRows) -> None:
    """Remark on columns and rows in another order than guides have: they may be mixed up."""
    names, keys = list(match.table.columns), len(match.table.keys)
    for board in match.boards or ("",):
        metrics = [c.metric for c in match.columns if c.board == board and c.metric in names]
        if metrics != sorted(metrics, key=names.index):
            done.remark(source.line, f"the columns {', '.join(metrics)} are in an unusual order")
    for before, late in itertools.pairwise(done.rows):
        # Where rows are sorted as text, guides of some releases go by the label.
        by_label = match.table.order == "text" and late.row.cells[:keys] >= before.row.cells[:keys]
        if match.table.place(late.case) < match.table.place(before.case) and not by_label:
            done.remark(late.row.line, f"the row {late.case!r} is in an unusual place")


def _gaps(match: Match, done: TableRows) -> None:
    """Remark on a figure that is missing where the other rows have one."""
    table = match.table
    if len(done.rows) < 2:
        return
    metrics = [{(b, f.metric) for b, f in r.figures} for r in done.rows]
    for column in match.columns:
        if column.words or column.listed or column.metric in table.empty:
            continue
        place = (column.board, column.metric)
        have = sum(place in row for row in metrics)
        mine = [one for one in match.columns if one.board == column.board]
        # A row that was shifted by a cell has none in the first of its board's columns.
        least = 1 if len(mine) > 1 and mine[0] == column else len(metrics) / 2
        if not len(metrics) > have >= least:
            continue
        for row, of_row in zip(done.rows, metrics, strict=True):
            if place not in of_row:
                whose = f" for {column.board}" if column.board else ""
                done.remark(row.row.line, f"{row.case} has no {column.metric}, as the other rows do{whose}")
