"""What a guide contains, in which order: as the project writes it, or like a given file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evmperf.guide.importer import Imported
from evmperf.guide.match import Column, row_key, split_label
from evmperf.model.figures import Figure, Key
from evmperf.published.declared import BOARD, Table, tables
from evmperf.published.dialect import Dialect

Figures = Mapping[str, Mapping[Key, Figure]]
"""Figures by board."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """One table: its columns, its rows as (case, printed label), and how its caption is set."""

    table: Table
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    caption: str
    caption_style: str = "argument"
    rubric: str = ""

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards of its columns, in order."""
        return tuple(dict.fromkeys(column.board for column in self.columns))


@dataclass(frozen=True)
class Unread:
    """A table that is not known, kept as it was."""

    text: str


@dataclass
class Layout:
    """Tables by section path, sections in order."""

    dialect: Dialect
    sections: dict[Path, list[Slot | Unread]] = field(default_factory=dict)

    def add(self, path: Path, entry: Slot | Unread) -> None:
        """Put a table at the end of its section; a new section goes behind its relatives."""
        if path not in self.sections:
            self._insert(path)
        self.sections[path].append(entry)

    def slots(self) -> Iterator[tuple[Path, Slot]]:
        """Every known table with its section."""
        for path, entries in self.sections.items():
            for entry in entries:
                if isinstance(entry, Slot):
                    yield path, entry

    def _insert(self, path: Path) -> None:
        paths = list(self.sections)
        place = len(paths)
        for depth in range(len(path), 0, -1):
            relatives = [n for n, known in enumerate(paths) if known[:depth] == path[:depth]]
            if relatives:
                place = relatives[-1] + 1
                break
        paths.insert(place, path)
        self.sections = {known: self.sections.get(known, []) for known in paths}


def own(figures: Figures, dialect: Dialect) -> Layout:
    """The project's own layout for these figures."""
    layout = Layout(dialect)
    for table in tables().values():
        boards = sorted(board for board in figures if _cases(table, figures[board]))
        section = table.module.section if table.module else table.sections[0]
        if BOARD not in section:
            _add_own(layout, table, section, boards, figures)
            continue
        for board in boards:
            path = tuple(board.upper() if part == BOARD else part for part in section)
            _add_own(layout, table, path, [board], figures)
    return layout


def like(imported: Imported, figures: Figures) -> Layout:
    """The layout of a given guide, filled with these figures; what it has no place for follows."""
    layout = Layout(imported.dialect)
    for source, found in zip(imported.source.tables, imported.matches, strict=True):
        if found is None:
            layout.add(source.section, Unread(source.text))
            continue
        rows = tuple(
            (row_key(row.cells, found.table), row.cells[: len(found.table.keys)])
            for row in source.rows
        )
        slot = Slot(
            found.table,
            found.columns,
            tuple((case, _label(found.table, case, cells, layout.dialect)) for case, cells in rows),
            source.caption,
            source.caption_style,
            source.rubric,
        )
        if filled := _filled(slot, figures):
            layout.add(source.section, filled)
    _add_missing(layout, figures)
    return layout


def _label(table: Table, case: str, cells: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """The key cells to write: in the dialect, or as they stood where a case has several names."""
    if table.rows:
        return (split_label(cells[0], table)[0],)
    return tuple(table.label_of(case, dialect).split("|"))


def _filled(slot: Slot, figures: Figures) -> Slot | None:
    """A slot without the columns and rows that there are no figures for; None if all are gone."""
    if slot.table.board_in_header:
        boards = [board for board in slot.boards if board in figures]
    else:
        boards = [""] if len(figures) == 1 else []
    columns = tuple(column for column in slot.columns if column.board in boards)
    rows = tuple(
        (case, label)
        for case, label in slot.rows
        if any(figure_of(slot.table, column, case, figures) for column in columns)
    )
    return replace(slot, columns=columns, rows=rows) if rows else None


def figure_of(table: Table, column: Column, case: str, figures: Figures) -> Figure | None:
    """The figure of one cell."""
    board = column.board or next(iter(figures), "")
    return figures.get(board, {}).get(Key(table.benchmark, case, column.metric))


def _add_missing(layout: Layout, figures: Figures) -> None:
    """Tables for the figures that have no place yet."""
    placed = {
        (board or next(iter(figures), ""), slot.table.benchmark)
        for _, slot in layout.slots()
        for board in slot.boards
    }
    rest = {
        board: {key: f for key, f in known.items() if (board, key.benchmark) not in placed}
        for board, known in figures.items()
    }
    for path, slot in own({b: f for b, f in rest.items() if f}, layout.dialect).slots():
        layout.add(path, slot)


def _add_own(
    layout: Layout, table: Table, path: Path, boards: Sequence[str], figures: Figures
) -> None:
    """One table; those without a board in their header are one for each board."""
    if not boards:
        return
    groups = [list(boards)] if table.board_in_header else [[board] for board in boards]
    for group in groups:
        here = {board: figures[board] for board in group}
        cases = _ordered(table, set().union(*(_cases(table, f) for f in here.values())))
        columns = tuple(
            Column(board if table.board_in_header else "", table.header_of(metric), metric)
            for board in group
            for metric in _metrics(table, here)
        )
        rows = tuple((c, tuple(table.label_of(c, layout.dialect).split("|"))) for c in cases)
        caption = table.captions[0] if table.captions else ""
        style = "argument" if caption else "none"
        slot = Slot(table, columns, rows, caption, style, table.rubric)
        if table.board_in_header or len(figures) == 1:
            layout.add(path, slot)
        else:
            # Nobody could tell whose figures they are: put the board into the section.
            whose = replace(
                slot, columns=tuple(replace(column, board=group[0]) for column in columns)
            )
            layout.add((*path, group[0].upper()), whose)


def _cases(table: Table, figures: Mapping[Key, Figure]) -> set[str]:
    """The cases of a table that have a figure in a declared column."""
    return {
        key.case for key in figures if key.benchmark == table.benchmark and _has(table, key.metric)
    }


def _has(table: Table, metric: str) -> bool:
    try:
        table.header_of(metric)
    except KeyError:
        return False
    return True


def _metrics(table: Table, figures: Figures) -> list[str]:
    """The metrics with a figure, in the order of the declared columns."""
    there = {
        key.metric
        for known in figures.values()
        for key in known
        if key.benchmark == table.benchmark and _has(table, key.metric)
    }
    order = {texts[0]: number for number, texts in enumerate(table.columns.values())}
    return sorted(there, key=lambda name: (order.get(table.header_of(name), len(order)), name))


def _ordered(table: Table, cases: Iterable[str]) -> list[str]:
    """Cases in the order of their table."""
    if table.order == "declared":
        return sorted(cases, key=lambda case: _place(table.row_order, case))
    if isinstance(table.order, tuple):
        return sorted(cases, key=lambda case: _place(table.order, case))
    if table.order in ("number", "hex"):
        base = 16 if table.order == "hex" else 10
        return sorted(cases, key=lambda case: int(case, base))
    return sorted(cases, key=lambda case: case.split("|"))


def _place(order: Sequence[str], case: str) -> tuple[int, str]:
    return (order.index(case) if case in order else len(order), case)
