"""What a guide contains, in which order: as the project writes it, or like a given file."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evmperf.judge.published.declared import AGAIN, BOARD, MatchedColumn, Table, tables
from evmperf.model.figures import Figure, Key

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


@dataclass
class Layout:
    """Tables by section path, sections in order."""

    sections: dict[Path, list[Slot]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    """Tables of the guide to be like that are not known, in words."""
    unmeasured: list[str] = field(default_factory=list)
    """Known ones that there are no figures for."""

    def add(self, path: Path, entry: Slot) -> None:
        """Put a table at the end of its section; a new section goes behind its relatives."""
        if path not in self.sections:
            paths = list(self.sections)
            depths = [shared(section, path) for section in paths]
            nearest = max(depths, default=0)
            place = 1 + max((n for n, depth in enumerate(depths) if depth == nearest > 0), default=len(paths))
            paths.insert(place, path)
            self.sections = {section: self.sections.get(section, []) for section in paths}
        self.sections[path].append(entry)

    def slots(self) -> Iterator[tuple[Path, Slot]]:
        """Every known table with its section."""
        for path, entries in self.sections.items():
            yield from ((path, slot) for slot in entries)


def shared(one: Path, other: Path) -> int:
    """How many headings two sections have in common."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len(list(alike))


def own(figures: Figures) -> Layout:
    """The project's own layout for these figures."""
    layout = Layout()
    for table in tables().values():
        boards = sorted(board for board in figures if _cases(table, figures[board]))
        together = table.board_in_header and BOARD not in table.section
        for group in filter(None, [boards] if together else [[board] for board in boards]):
            _add_own(layout, table, group, figures)
    return layout


def like(printed: Iterable[tuple[Path, Slot | str]], figures: Figures) -> Layout:
    """The layout of a given guide's tables by section, filled with these figures; what it has no place for
    follows. A table of it that is not known, in words, is left out (the layout's `unread`), as its figures
    would be another release's.
    """
    layout = Layout()
    for section, slot in printed:
        if isinstance(slot, str):
            layout.unread.append(slot)
        elif filled := _filled(slot, figures):
            layout.add(section, filled)
        else:
            layout.unmeasured.append(slot.table.benchmark)
    _add_missing(layout, figures)
    return layout


def _filled(slot: Slot, figures: Figures) -> Slot | None:
    """A slot without the columns and rows that there are no figures for; None if all are gone."""
    boards = figures if any(slot.boards) else {""} if len(figures) == 1 else ()
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
    of_board = figures.get(column.board or next(iter(figures), ""), {})
    if case.endswith(AGAIN) and Key(table.benchmark, case, column.metric) not in of_board:
        case = case.removesuffix(AGAIN)
    if column.words:
        of_case = (f for key, f in of_board.items() if key[:2] == (table.benchmark, case))
        return [f for f in of_case if column.metric in f.conditions][:1]
    if not column.listed:
        figure = of_board.get(Key(table.benchmark, case, column.metric))
        return [figure] if figure else []
    metrics = (column.metric.replace("{n}", str(number)) for number in itertools.count())
    several = (of_board.get(Key(table.benchmark, case, metric)) for metric in metrics)
    return [figure for figure in itertools.takewhile(bool, several) if figure]


def _add_missing(layout: Layout, figures: Figures) -> None:
    """Rows and tables for the figures that have no place yet."""
    lone = next(iter(figures), "")
    placed: dict[tuple[str, str], set[str]] = {}
    for _, slot in layout.slots():
        for board in slot.boards:
            cases = placed.setdefault((board or lone, slot.table.benchmark), set())
            cases.update(line.case for line in slot.rows)
    for entries in layout.sections.values():
        for number, entry in enumerate(entries):
            more: dict[str, None] = {}
            for board in (board or lone for board in entry.boards):
                placed_cases = placed[board, entry.table.benchmark]
                cases = _cases(entry.table, figures.get(board, {})) - placed_cases
                more |= dict.fromkeys(sorted(cases, key=entry.table.place))
                placed_cases |= cases
            entries[number] = replace(entry, rows=(*entry.rows, *_lines(entry.table, more)))
    rest = {
        board: {key: f for key, f in of_board.items() if (board, key.benchmark) not in placed}
        for board, of_board in figures.items()
    }
    for path, slot in own({b: f for b, f in rest.items() if f}).slots():
        layout.add(path, slot)


def _lines(table: Table, cases: Iterable[str]) -> tuple[LayoutLine, ...]:
    return tuple(LayoutLine(case, tuple(table.label_of(case).split("|"))) for case in cases)


def _add_own(layout: Layout, table: Table, boards: Sequence[str], figures: Figures) -> None:
    """One table of some boards; of one where its header or section names it."""
    here = {board: figures[board] for board in boards}
    path = tuple(boards[0].upper() if part == BOARD else part for part in table.section)
    cases = sorted(set().union(*(_cases(table, of_board) for of_board in here.values())), key=table.place)
    named = table.board_in_header or len(figures) > 1
    if named and not table.board_in_header:
        # Nobody could tell whose figures they are: put the board into the section.
        path = (*path, boards[0].upper())
    columns = tuple(
        MatchedColumn(board if named else "", title, name, words=words)
        for board in boards
        for title, name, words in _titles(table, here)
    )
    caption = table.captions[0] if table.captions else ""
    style = "argument" if caption else "none"
    slot = Slot(table, columns, _lines(table, cases), caption, style, table.rubric)
    layout.add(path, slot)


def _cases(table: Table, figures: Mapping[Key, Figure]) -> set[str]:
    """The cases of a table that have a figure in a declared column."""
    return {key.case for key in figures if key.benchmark == table.benchmark and table.header_of(key.metric)}


def _titles(table: Table, figures: Figures) -> list[tuple[str, str, bool]]:
    """Header, name and kind of a board's columns: metrics with a figure, as declared, and words."""
    keys = {key for of_board in figures.values() for key in of_board if key.benchmark == table.benchmark}
    headers = {key.metric: header for key in keys if (header := table.header_of(key.metric))}
    order = {texts[0]: number for number, texts in enumerate(table.columns.values())}
    ordered = sorted(headers, key=lambda name: (order.get(headers[name], len(order)), name))
    words = [(texts[0], name, True) for name, texts in table.text_columns.items()]
    return [*((headers[name], name, False) for name in ordered), *words]
