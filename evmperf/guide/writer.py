"""Layout and figures to reStructuredText that docutils and Sphinx take without a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evmperf.guide.cells import figure_text
from evmperf.guide.layout import Figures, Layout, Path, Slot, Unread, figure_of
from evmperf.model.figures import Figure
from evmperf.model.stats import outliers_text, percent
from evmperf.published.declared import outline
from evmperf.published.releases import Module

_UNDERLINES = '-^"~'
_INTRODUCTION = """\
Figures of the device drivers and of the system as a whole, measured by evmperf on the
evaluation modules below. A figure stands for the mean of its samples, with the smallest and the
largest behind it in parentheses where there are several.

Each table is one benchmark. ``evmperf list`` has their names, and this measures one again::

    pytest --lg-env BOARD.yaml -k NAME
"""


@dataclass(frozen=True)
class Head:
    """What is said of the guide as a whole."""

    release: str
    os: str
    modules: Sequence[Module] = ()

    @property
    def title(self) -> str:
        """The guide's title."""
        return f"{self.os} {self.release} Performance Guide"


@dataclass(frozen=True)
class Extras:
    """What is shown beyond the figures, and plots by benchmark (paths beside the guide)."""

    counts: bool = False
    outliers: bool = False
    previous: Figures | None = None
    """Figures of the release before, to show the change against."""
    plots: Mapping[str, Sequence[str]] | None = None


def render(layout: Layout, figures: Figures, head: Head, extras: Extras | None = None) -> str:
    """The whole guide."""
    extras = extras or Extras()
    bar = "=" * (len(head.title) + 2)
    parts = [f"{bar}\n {head.title}\n{bar}\n", _INTRODUCTION]
    if head.modules:
        parts.append(_modules(head.modules))
    seen: Path = ()
    for path, entries in layout.sections.items():
        parts += _headings(seen, path)
        seen = path
        rubric = ""
        for entry in entries:
            if isinstance(entry, Unread):
                parts.append(f"{entry.text.rstrip()}\n")
                continue
            if entry.rubric and entry.rubric != rubric:
                parts.append(f".. rubric:: {entry.rubric}\n")
            rubric = entry.rubric
            parts += _table(entry, figures, extras)
    return "\n".join(parts)


def _headings(before: Path, path: Path) -> Iterator[str]:
    """The headings between one section and the next, with the words that belong there."""
    shared = 0
    while shared < min(len(before), len(path)) and before[shared] == path[shared]:
        shared += 1
    for depth in range(shared, len(path)):
        mark = _UNDERLINES[min(depth, len(_UNDERLINES) - 1)]
        yield f"{path[depth]}\n{mark * len(path[depth])}\n"
        if prose := outline().prose.get(path[: depth + 1]):
            yield prose


def _table(slot: Slot, figures: Figures, extras: Extras) -> Iterator[str]:
    if slot.table.prose:
        yield slot.table.prose
    titles = (_header(slot, column.board, column.title) for column in slot.columns)
    header = [*slot.table.keys, *titles]
    argument = f" {slot.caption}" if slot.caption_style == "argument" else ""
    lines = [f".. csv-table::{argument}", f"    :header: {_csv(header)}", ""]
    if slot.caption_style == "before":
        yield f"Table:  **{slot.caption}**\n"
    for case, label in slot.rows:
        lines.append(f"    {_csv([*label, *_cells(slot, case, figures, extras)])}")
    yield "\n".join(lines) + "\n"
    if slot.caption_style == "after":
        yield f"Table:  **{slot.caption}**\n"
    if flaws := _flaws(slot, figures):
        yield "\n".join(flaws) + "\n"
    for plot in (extras.plots or {}).get(slot.table.benchmark, ()):
        yield f".. image:: {plot}\n   :alt: {slot.table.title}\n"


def _header(slot: Slot, board: str, title: str) -> str:
    return f"{board}: {title}" if board and slot.table.board_in_header else title


def _cells(slot: Slot, case: str, figures: Figures, extras: Extras) -> list[str]:
    """The cells of a row; those missing at its end are left out, as the guides do."""
    texts = []
    for column in slot.columns:
        figure = figure_of(slot.table, column, case, figures)
        if figure is None:
            texts.append(slot.table.empty.get(column.metric, ""))
        else:
            before = figure_of(slot.table, column, case, extras.previous or {})
            texts.append(cell_text(slot, figure) + _extra(figure, before, extras))
    while texts and not texts[-1]:
        texts.pop()
    return texts


def cell_text(slot: Slot, figure: Figure) -> str:
    """A figure as its table prints it."""
    if figure.text:
        return figure.text
    several = figure.count != 1
    bounds = (figure.low, figure.high) if several else (None, None)
    text = figure_text(figure.mean, *bounds, slot.table.decimals)
    return f"{text} {figure.unit}" if slot.table.unit_in_cell else text


def _extra(figure: Figure, before: Figure | None, extras: Extras) -> str:
    parts = []
    if extras.counts and figure.count:
        parts.append(f"n {figure.count}")
    if before and before.mean and before.unit == figure.unit:
        parts.append(percent(figure.mean / before.mean - 1))
    if extras.outliers and figure.outliers:
        parts.append(outliers_text(figure.outliers))
    return f" [{', '.join(parts)}]" if parts else ""


def _flaws(slot: Slot, figures: Figures) -> list[str]:
    """Notes under a table on figures that came from a refused or partial measurement."""
    notes: dict[str, None] = {}
    for case, label in slot.rows:
        for column in slot.columns:
            figure = figure_of(slot.table, column, case, figures)
            if figure and figure.flaw:
                notes[f"- {' '.join(filter(None, (column.board, *label)))}: {figure.flaw}"] = None
    return list(notes)


def _csv(cells: Sequence[str]) -> str:
    return ",".join('"{}"'.format(cell.replace('"', '""')) for cell in cells)


def _modules(modules: Sequence[Module]) -> str:
    """The grid table of evaluation modules, and its caption."""
    head = ("Name", "Board", "Description")
    rows = [(module.name, module.board, module.description) for module in modules]
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]

    def rule(mark: str) -> str:
        return "+" + "+".join(mark * (width + 2) for width in widths) + "+"

    def line(row: Sequence[str]) -> str:
        return "|" + "|".join(f" {c:<{w}} " for c, w in zip(row, widths, strict=True)) + "|"

    lines = [rule("-"), line(head), rule("=")]
    for row in rows:
        lines += [line(row), rule("-")]
    return "\n".join(lines) + "\n\nTable:  Evaluation Modules\n"
