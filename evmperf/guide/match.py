"""Which benchmark a table is: told by its section, caption, headers and row keys together.

No single one of them suffices: `perf` heads nine tables, one section holds two tables told apart
by their captions, and other tables have no caption at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.guide.source import SourceTable
from evmperf.published.declared import BOARD, Table, tables
from evmperf.published.dialect import UNIT_TEXTS

_BOARD_HEADER = re.compile(r"(?P<board>[A-Za-z0-9][\w.-]*): (?P<title>\S.*)")
_UNIT_SUFFIX = re.compile(r"(?P<label>.*) \((?P<unit>[^()]*)\)")
_BOARD_SECTION = re.compile(r"[A-Z0-9][A-Z0-9_-]+")


class Unknown(Exception):
    """A table that is none of the declared ones; its text says why."""


@dataclass(frozen=True)
class Column:
    """One column of figures: whose, and what. `board` is "" where the header names none."""

    board: str
    title: str
    metric: str


@dataclass(frozen=True)
class Match:
    """A recognised table."""

    table: Table
    columns: tuple[Column, ...]

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards in the header, in its order."""
        return tuple(dict.fromkeys(column.board for column in self.columns if column.board))


def identify(source: SourceTable) -> Match:
    """The benchmark that a table shows; raises Unknown."""
    if source.error:
        raise Unknown(source.error)
    fitting = [
        Match(table, columns)
        for table in tables().values()
        if (columns := _columns(table, source.header)) is not None
    ]
    if not fitting:
        raise Unknown(f"no known table has the header {_shown(source.header)}")
    placed = [match for match in fitting if _in_section(match.table, source.section)]
    if not placed:
        where = " / ".join(source.section) or "before the first section"
        raise Unknown(f"no known table of section {where!r} has the header {_shown(source.header)}")
    return _only(_narrow(placed, source), source)


def split_header(header: str) -> tuple[str, str]:
    """Board and title of a column header; board "" where it names none."""
    match = _BOARD_HEADER.fullmatch(header.strip())
    return (match["board"], match["title"]) if match else ("", header.strip())


def split_label(label: str, table: Table) -> tuple[str, str | None]:
    """Row label and unit text of a key cell; None for tables without units in their labels."""
    if not table.row_units:
        return label, None
    match = _UNIT_SUFFIX.fullmatch(label)
    return (match["label"], match["unit"]) if match else (label, None)


def row_key(cells: Sequence[str], table: Table) -> str:
    """The case's label that a row's key cells make: two of them are joined with `|`."""
    keys = [cell.strip() for cell in cells[: len(table.keys)]]
    return table.case_of(split_label("|".join(keys), table)[0])


def knows_row(table: Table, case: str) -> bool:
    """Whether a table has such a row; tables that list none have any."""
    if table.row_units:
        return case in table.row_units
    if table.rows:
        return case in table.rows.values()
    return not table.row_order or case in table.row_order


def unit_fits(table: Table, case: str, unit_text: str | None) -> bool:
    """Whether a row's unit is spelt in one of the known ways."""
    if not table.row_units:
        return True
    texts = UNIT_TEXTS[table.row_units[case]]
    return unit_text in (texts.classic, texts.lower)


def _columns(table: Table, header: Sequence[str]) -> tuple[Column, ...] | None:
    count = len(table.keys)
    if tuple(text.strip() for text in header[:count]) != table.keys or len(header) <= count:
        return None
    columns = []
    for text in header[count:]:
        board, title = split_header(text)
        metric = table.metric_of_header(title)
        if metric is None or bool(board) != table.board_in_header:
            return None
        columns.append(Column(board, title, metric))
    seen = {(column.board, column.metric) for column in columns}
    return tuple(columns) if len(seen) == len(columns) else None


def _in_section(table: Table, section: tuple[str, ...]) -> bool:
    return any(
        len(known) == len(section)
        and all(
            _plain(a) == _plain(b) or (a == BOARD and _BOARD_SECTION.fullmatch(b))
            for a, b in zip(known, section, strict=True)
        )
        for known in table.sections
    )


def _narrow(placed: list[Match], source: SourceTable) -> list[Match]:
    """Those whose caption fits, else those whose rows fit."""
    caption = _plain(source.caption)
    named = [
        match
        for match in placed
        if caption and caption in {_plain(text) for text in match.table.captions}
    ]
    if named:
        return named
    if len(placed) > 1 and not caption:
        # A table without caption is the section's first of its kind.
        keys = {match: _known_rows(match.table, source) for match in placed}
        most = max(keys.values())
        return [match for match in placed if keys[match] == most]
    return placed


def _known_rows(table: Table, source: SourceTable) -> int:
    return sum(knows_row(table, row_key(row.cells, table)) for row in source.rows)


def _only(found: list[Match], source: SourceTable) -> Match:
    if len(found) > 1:
        names = ", ".join(match.table.benchmark for match in found)
        caption = f"the caption {source.caption!r}" if source.caption else "no caption"
        raise Unknown(f"with {caption} it could be any of {names}")
    if source.rows and not _known_rows(found[0].table, source):
        raise Unknown(f"none of its rows is one of {found[0].table.benchmark}")
    return found[0]


def _plain(text: str) -> str:
    """A title without what differs between releases: case, underscores, runs of blanks."""
    return " ".join(text.replace("_", " ").lower().split())


def _shown(header: Sequence[str]) -> str:
    return ", ".join(repr(split_header(text)[1]) for text in header[:6])
