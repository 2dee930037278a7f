"""What a guide contains, in which order: as the project writes it, or like a given file."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evmperf.guide.importer import ImportedGuide
from evmperf.guide.match import MatchedColumn
from evmperf.model.figures import Figure, Key
from evmperf.published.declared import AGAIN, BOARD, Table, tables
from evmperf.published.dialect import Dialect

Figures = Mapping[str, Mapping[Key, Figure]]
"""Figures by board."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class LayoutLine:
    """One row: its case, its printed key cells, and how many cells it has at least."""

    case: str
    label: tuple[str, ...]
    width: int = 0


@dataclass(frozen=True)
class Slot:
    """One table: its columns, its rows, and how its caption is set."""

    table: Table
    columns: tuple[MatchedColumn, ...]
    rows: tuple[LayoutLine, ...]
    caption: str
    caption_style: str = "argument"
    rubric: str = ""
    keys: tuple[str, ...] = ()
    """Headers of its key columns, where they are not the declared ones."""

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards of its columns, in order."""
        return tuple(dict.fromkeys(column.board for column in self.columns))

    def filled(self, figures: Figures) -> Iterator[tuple[LayoutLine, MatchedColumn, Figure]]:
        """Every figure of the table, with its row and column."""
        for line, column in itertools.product(self.rows, self.columns):
            yield from ((line, column, f) for f in figures_of(self.table, column, line.case, figures))


@dataclass(frozen=True)
class Unread:
    """A table that is not known, to be copied as it was, marked as such."""

    text: str
    origin: str


@dataclass
class Layout:
    """Tables by section path, sections in order."""

    dialect: Dialect
    sections: dict[Path, list[Slot | Unread]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    """Tables of the guide to be like that are not known, in words."""
    unmeasured: list[str] = field(default_factory=list)
    """Known ones that there are no figures for."""

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
        if BOARD not in table.section:
            _add_own(layout, table, table.section, boards, figures)
            continue
        for board in boards:
            path = tuple(board.upper() if part == BOARD else part for part in table.section)
            _add_own(layout, table, path, [board], figures)
    return layout


def like(imported: ImportedGuide, figures: Figures, keep_unread: bool = False) -> Layout:
    """The layout of a given guide, filled with these figures; what it has no place for follows.

    A table of it that is not known is left out, as its figures would be another release's, unless
    `keep_unread`; either way it is among the layout's `unread`.
    """
    layout = Layout(imported.dialect)
    seen: set[tuple[str, str, str]] = set()
    for source, found in zip(imported.source.tables, imported.matches, strict=True):
        if found is None:
            what = source.caption or " / ".join(source.section) or "no caption"
            layout.unread.append(f"line {source.line} ({what})")
            if keep_unread:
                origin = f"{imported.os} {imported.release}"
                layout.add(source.section, Unread(source.text, origin))
            continue
        rows = []
        for r in found.rows:
            whose = {(found.match.table.benchmark, r.case, board) for board in found.match.boards or ("",)}
            case = r.case + AGAIN if whose & seen else r.case
            seen |= whose
            label = r.row.cells[: len(found.match.table.keys)]
            rows.append(LayoutLine(case, label, len(r.row.cells)))
        slot = Slot(
            found.match.table,
            found.match.columns,
            tuple(rows),
            source.caption,
            source.caption_style,
            source.rubric,
            source.header[: len(found.match.table.keys)],
        )
        if filled := _filled(slot, figures):
            layout.add(source.section, filled)
        else:
            layout.unmeasured.append(found.match.table.benchmark)
    _add_missing(layout, figures)
    return layout


def _filled(slot: Slot, figures: Figures) -> Slot | None:
    """A slot without the columns and rows that there are no figures for; None if all are gone."""
    if any(slot.boards):
        boards = [board for board in slot.boards if board in figures]
    else:
        boards = [""] if len(figures) == 1 else []
    columns = tuple(column for column in slot.columns if column.board in boards)
    whole = len(columns) == len(slot.columns)
    rows = tuple(
        line if whole else replace(line, width=0)
        for line in slot.rows
        if any(figures_of(slot.table, column, line.case, figures) for column in columns)
    )
    return replace(slot, columns=columns, rows=rows) if rows else None


def figures_of(table: Table, column: MatchedColumn, case: str, figures: Figures) -> list[Figure]:
    """The figures of one cell: one, several of a column with one for each core, or none."""
    known = figures.get(column.board or next(iter(figures), ""), {})
    if case.endswith(AGAIN) and Key(table.benchmark, case, column.metric) not in known:
        case = case.removesuffix(AGAIN)
    if column.words:
        there = (f for key, f in known.items() if key[:2] == (table.benchmark, case))
        return [f for f in there if column.metric in f.conditions][:1]
    if not column.listed:
        found = known.get(Key(table.benchmark, case, column.metric))
        return [found] if found else []
    several: list[Figure] = []
    for number in itertools.count():
        metric = column.metric.replace("{n}", str(number))
        found = known.get(Key(table.benchmark, case, metric))
        if found is None:
            return several
        several.append(found)
    raise AssertionError("count() does not end")


def _add_missing(layout: Layout, figures: Figures) -> None:
    """Rows and tables for the figures that have no place yet."""
    lone = next(iter(figures), "")
    placed: dict[tuple[str, str], set[str]] = {}
    for _, slot in layout.slots():
        for board in slot.boards:
            cases = placed.setdefault((board or lone, slot.table.benchmark), set())
            cases.update(line.case for line in slot.rows)
    for path, entries in layout.sections.items():
        for number, entry in enumerate(entries):
            if isinstance(entry, Slot):
                layout.sections[path][number] = _longer(entry, placed, figures, layout.dialect)
    rest = {
        board: {key: f for key, f in known.items() if (board, key.benchmark) not in placed}
        for board, known in figures.items()
    }
    for path, slot in own({b: f for b, f in rest.items() if f}, layout.dialect).slots():
        layout.add(path, slot)


def _longer(slot: Slot, placed: dict[tuple[str, str], set[str]], figures: Figures, dialect: Dialect) -> Slot:
    """A slot with the rows that its boards have besides, and no slot had."""
    more: dict[str, LayoutLine] = {}
    for board in slot.boards:
        whose = board or next(iter(figures), "")
        known = placed[whose, slot.table.benchmark]
        for case in sorted(_cases(slot.table, figures.get(whose, {})) - known, key=slot.table.place):
            more[case] = LayoutLine(case, tuple(slot.table.label_of(case, dialect).split("|")))
            known.add(case)
    return replace(slot, rows=(*slot.rows, *more.values()))


def _add_own(layout: Layout, table: Table, path: Path, boards: Sequence[str], figures: Figures) -> None:
    """One table; those without a board in their header are one for each board."""
    if not boards:
        return
    groups = [list(boards)] if table.board_in_header else [[board] for board in boards]
    for group in groups:
        here = {board: figures[board] for board in group}
        cases = sorted(set().union(*(_cases(table, f) for f in here.values())), key=table.place)
        columns = tuple(
            MatchedColumn(board if table.board_in_header else "", title, name, words=words)
            for board in group
            for title, name, words in _titles(table, here)
        )
        rows = tuple(LayoutLine(c, tuple(table.label_of(c, layout.dialect).split("|"))) for c in cases)
        caption = table.captions[0] if table.captions else ""
        style = "argument" if caption else "none"
        slot = Slot(table, columns, rows, caption, style, table.rubric)
        if table.board_in_header or len(figures) == 1:
            layout.add(path, slot)
        else:
            # Nobody could tell whose figures they are: put the board into the section.
            whose = replace(slot, columns=tuple(replace(column, board=group[0]) for column in columns))
            layout.add((*path, group[0].upper()), whose)


def _cases(table: Table, figures: Mapping[Key, Figure]) -> set[str]:
    """The cases of a table that have a figure in a declared column."""
    return {key.case for key in figures if key.benchmark == table.benchmark and table.header_of(key.metric)}


def _metrics(table: Table, figures: Figures) -> list[str]:
    """The metrics with a figure, in the order of the declared columns."""
    there = {
        key.metric
        for known in figures.values()
        for key in known
        if key.benchmark == table.benchmark and table.header_of(key.metric)
    }
    order = {texts[0]: number for number, texts in enumerate(table.columns.values())}
    return sorted(there, key=lambda name: (order.get(table.header_of(name), len(order)), name))


def _titles(table: Table, figures: Figures) -> list[tuple[str, str, bool]]:
    """Header, name and kind of a board's columns."""
    titles = [(table.header_of(metric), metric, False) for metric in _metrics(table, figures)]
    return titles + [(texts[0], name, True) for name, texts in table.text_columns.items()]
