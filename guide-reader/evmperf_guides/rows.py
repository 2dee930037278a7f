"""The rows of a known table to figures. What cannot be vouched for is not read: a row of another
width than its header is refused whole, as its cells may be anybody's, but for what a witness has seen.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from evmperf.judge.published.declared import ROW_UNITS, MatchedColumn, Table
from evmperf.model.results import Published
from evmperf.model.stats import figure_text
from evmperf.model.units import Unit
from evmperf_guides.match import Match, row_key
from evmperf_guides.source import GuideRow, Problem, ReadingNotes, SourceTable

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
    """What was read of a known table. Columns that name no board are those of the board `lone`."""

    source: SourceTable
    match: Match
    notes: ReadingNotes
    release: str = ""
    lone: str = ""
    rows: list[Read] = field(default_factory=list)

    @property
    def short(self) -> list[GuideRow]:
        """Rows that lack cells."""
        keys = len(self.match.table.keys)
        return [row for row in self.source.rows if 0 < len(row.cells) - keys < len(self.match.columns)]

    def of_board(self, board: str) -> list[tuple[str, list[Published]]]:
        """Case and figures of each row of a board."""
        return [(row.case, [f for whose, f in row.figures if whose == board]) for row in self.rows]

    def refuse(self, row: GuideRow, reason: str, count: int) -> None:
        """Note what of a row is not read."""
        text = ",".join(f'"{cell}"' for cell in row.cells)
        self.notes.refuse(Problem(row.line, reason, text), count)


Place = Callable[[TableRows, str, Sequence[str]], tuple[Sequence[str], str]]
"""Puts the cells of a short row into its columns, and says how it knows; [] and "" where it does not."""


def read(done: TableRows) -> TableRows:
    """Read a table's rows but for the short ones, which `complete` reads."""
    short = done.short
    for row in (row for row in done.source.rows if row not in short):
        _read(done, row)
    return done


def complete(done: TableRows, place: Place) -> None:
    """Read a table's short rows, where others tell whose cells they have, and remark on what looks wrong."""
    keys = len(done.match.table.keys)
    for row in done.short:
        case, cells = row_key(row.cells, done.match.table)[0], row.cells[keys:]
        placed, how = place(done, case, cells)
        if placed:
            lacks = f"the row {case!r} lacks cells:"
            done.notes.remark(row.line, f"{lacks} the others are put into columns {how}")
            if left := sum(map(bool, cells)) - sum(map(bool, placed)):
                done.refuse(row, f"{lacks} the board of {left} is unknown", left)
        _read(done, replace(row, cells=(*row.cells[:keys], *placed)) if placed else row)
    done.rows.sort(key=lambda read: read.row.line)
    _look_at(done)


def _read(done: TableRows, row: GuideRow) -> None:
    """Read the figures of a row, by board; cells that are none are noted."""
    case, unit = row_key(row.cells, done.match.table)
    if reason := row.error or _refusal(done, row, case, unit):
        done.refuse(row, reason, len(row.cells) or 1)
        return
    table, taken, words = done.match.table, [], []
    for column, text in zip(done.match.columns, row.cells[len(table.keys) :], strict=False):
        board = column.board or done.lone
        if text.strip().lower() in ("", "n/a"):
            continue
        if column.words:
            words.append((board, column.metric, text.strip()))
            continue
        try:
            taken += [(board, figure) for figure in figures(table, column, case, text, row.line)]
        except CellError as error:
            done.refuse(row, f"{case} {column.metric}: {error}", 1)
    for _, one in taken if not (table.unit_in_cell or table.free_decimals) else ():
        printed = _CELL.match(one.text.strip())
        if printed and len(printed["mean"].partition(".")[2]) != table.decimals:
            # A point may have been lost.
            others = f"with {table.decimals} decimals as the others are"
            done.notes.remark(one.line, f"{case} {one.metric}: {one.text!r} is not printed {others}")
    done.rows.append(Read(case, row, tuple(taken), tuple(words)))


def _refusal(done: TableRows, row: GuideRow, case: str, unit: str | None) -> str:
    """Why a row is not read at all; "" if it is."""
    table, width = done.match.table, len(done.match.table.keys) + len(done.match.columns)
    is_short = len(row.cells) < width and (done.release, case) in table.short_rows
    if len(row.cells) != width and not is_short:
        than = f"{'more' if len(row.cells) > width else 'fewer'} than the {width} of its header"
        return f"the row has {len(row.cells)} cells, {than}: their board is unknown"
    if not table.knows(case):
        return f"{table.benchmark} has no row {case!r}"
    known = table.row_unit(case)
    if table.units_in_labels and (unit is None or known is None or unit.lower() not in ROW_UNITS[known]):
        return f"unit {unit!r} of {case} is unknown for it"
    return ""


def figures(table: Table, column: MatchedColumn, case: str, text: str, line: int) -> Iterator[Published]:
    """The figures of one cell; raises CellError."""
    for number, one in enumerate(text.split(",") if column.listed else [text]):
        name = column.metric.replace("{n}", str(number))
        metric = table.metric(case, name)
        if metric is None:
            raise CellError(f"{table.benchmark} has no metric {name}")
        yield figure(one, metric.name, metric.unit, table.decimals, line)


def _look_at(done: TableRows) -> None:
    """Remark on columns and rows in another order than guides have, which may be mixed up, and on a figure
    that is missing where the other rows have one.
    """
    table, names = done.match.table, list(done.match.table.columns)
    for board in done.match.boards or ("",):
        metrics = [c.metric for c in done.match.columns if c.board == board and c.metric in names]
        if metrics != sorted(metrics, key=names.index):
            done.notes.remark(done.source.line, f"the columns {', '.join(metrics)} are in an unusual order")
    for before, late in itertools.pairwise(done.rows):
        # Where rows are sorted as text, guides of some releases go by the label.
        labels = [row.row.cells[: len(table.keys)] for row in (before, late)]
        by_label = table.order == "text" and labels == sorted(labels)
        if table.place(late.case) < table.place(before.case) and not by_label:
            done.notes.remark(late.row.line, f"the row {late.case!r} is in an unusual place")
    places = [{(board, figure.metric) for board, figure in row.figures} for row in done.rows]
    for column in done.match.columns if len(places) > 1 else ():
        if column.words or column.listed or column.metric in done.match.table.empty:
            continue
        place = (column.board or done.lone, column.metric)
        have = sum(place in row for row in places)
        mine = [one for one in done.match.columns if one.board == column.board]
        # A row that was shifted by a cell has none in the first of its board's columns.
        least = 1 if len(mine) > 1 and mine[0] == column else len(places) / 2
        for row, of_row in zip(done.rows, places, strict=True):
            if len(places) > have >= least and place not in of_row:
                whose = f" for {column.board}" if column.board else ""
                reason = f"{row.case} has no {column.metric}, as the other rows do{whose}"
                done.notes.remark(row.row.line, reason)
