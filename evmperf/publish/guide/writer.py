"""Layout and figures to reStructuredText that docutils and Sphinx take without a warning."""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evmperf.benchmarks import energy, wording
from evmperf.boards.options import General
from evmperf.judge import judge
from evmperf.judge.published import scatter
from evmperf.judge.published.declared import QUICK_MARK, outline, tables
from evmperf.model import anytime
from evmperf.model.figures import Figure, Key
from evmperf.model.outlets import line as one_line
from evmperf.model.outlets import rst
from evmperf.model.results import REPEAT, Direction, Result
from evmperf.model.stats import figure_text, percent
from evmperf.model.units import counted
from evmperf.publish.guide.layout import Figures, Layout, LayoutLine, Path, Slot, figures_of, shared
from evmperf.publish.pages import look

_NOTHING = percent(0.0)[1:]
_UNDERLINES = '-^"~'
_LARGE = 0.05
"""A change that the summary counts."""
_KINDS = {
    "measured": "Measured by evmperf",
    "published": "As TI published them, not measured by evmperf",
    "quick": "Measured by evmperf with the quick profile, with the parameters given at each table",
}


@dataclass(frozen=True)
class Head:
    """What is said of the guide as a whole."""

    release: str
    os: str
    modules: Sequence[General] = ()
    boards: Sequence[str] = ()
    facts: Sequence[str] = ()
    """Sentences for the cover of a page: where the figures are from, when they were measured, ..."""

    @property
    def title(self) -> str:
        """The guide's title."""
        return one_line(f"{self.os} {self.release} Performance Guide")


@dataclass(frozen=True)
class Extras:
    """What is shown beyond the figures."""

    counts: bool = False
    outliers: bool = False
    previous: Figures | None = None
    """Figures of the release before, to show the change against."""
    before: str = ""
    """That release."""
    os: str = ""
    """The operating system of the guide, whose releases tell the scatter of a metric."""
    doubtful: frozenset[tuple[str, Key]] = frozenset()
    """Figures by board that are doubtful in either release: no change of them is told."""


def render(layout: Layout, figures: Figures, head: Head, extras: Extras | None = None) -> str:
    """The whole guide."""
    extras = extras or Extras()
    sections = []
    seen: Path = ()
    for path, entries in layout.sections.items():
        rendered = [_table(slot, figures, extras) for slot in entries]
        sections.append((_headings(seen, path), rendered))
        seen = path
    text = look.render(
        "publish/guide/guide.rst.j2",
        head=head,
        bar="=" * (len(head.title) + 2),
        sentences=sentences(figures),
        extras=extras,
        summary=_summary(figures, extras.previous, extras) if extras.previous else "",
        measured=any(not figure.published for of_board in figures.values() for figure in of_board.values()),
        modules=_modules(head.modules) if head.modules else (),
        sections=sections,
    )
    return text.rstrip("\n") + "\n"


def _summary(figures: Figures, previous: Figures, extras: Extras) -> str:
    """What became better, worse, new, missing and doubtful, in five sentences."""
    changed: dict[str, list[tuple[float, str]]] = {"better": [], "worse": []}
    new: list[str] = []
    gone: list[str] = []
    for board, earlier in previous.items():
        of_board = figures.get(board, {}) if earlier else {}
        new += [key.benchmark for key in of_board if key not in earlier]
        gone += [key.benchmark for key in earlier if board in figures and key not in of_board]
        for key in (key for key in of_board if key in earlier and (board, key) not in extras.doubtful):
            figure, other = of_board[key], earlier[key]
            if key.benchmark in tables() and other.mean and other.unit == figure.unit:
                change, way = figure.mean / other.mean - 1, _way(figure, other, board, extras.os)
                if way in changed and abs(change) >= _LARGE:
                    changed[way].append((abs(change), f"{board} {key} ({percent(change)})"))
    summary = []
    for way, largest in changed.items():
        most = f", most of all {max(largest)[1]}" if largest else ""
        summary.append(f"{len(largest)} figures became {way} by {_LARGE:.0%} or more{most}.")
    summary.append(f"{len(new)} figures are new{_named(new)}.")
    summary.append(f"{len(gone)} figures of release {extras.before} are missing{_named(gone)}.")
    summary.append(f"{len(extras.doubtful)} figures are doubtful, and their changes are not shown.")
    return " ".join(summary)


def _named(benchmarks: Sequence[str]) -> str:
    names = list(dict.fromkeys(benchmarks))
    return f" ({', '.join(names[:3])}{', ...' * (len(names) > 3)})" if names else ""


def _headings(before: Path, path: Path) -> Iterator[tuple[str, str, str]]:
    """The headings between one section and the next, underlined, with the words that belong there."""
    for depth in range(shared(before, path), len(path)):
        mark = _UNDERLINES[min(depth, len(_UNDERLINES) - 1)]
        yield path[depth], mark * len(path[depth]), outline().sections.get(" > ".join(path[: depth + 1]), "")


def _table(slot: Slot, figures: Figures, extras: Extras) -> dict[str, object]:
    """What the template prints of a table."""
    named = slot.table.board_in_header
    titles = (
        column.printed or (f"{column.board}: {column.title}" if column.board and named else column.title)
        for column in slot.columns
    )
    caption, style = slot.caption, slot.caption_style
    if quick := _quick(slot, figures):
        caption = f"{caption.partition(QUICK_MARK)[0].strip() or slot.table.title} {quick}"
        style = "argument" if style == "none" else style
    boards = dict.fromkeys(board for board, figure in _all(slot, figures) if not figure.published)
    # For the page; of a guide as text they are in the file beside it.
    conditions = [f".. conditions: {slot.table.benchmark} {' '.join(boards)}"] if boards else []
    remarks = [*_repeated(slot, figures), *_notes(slot, figures)]
    return {
        "table": slot.table,
        "rubric": slot.rubric,
        "caption": caption,
        "style": style,
        "header": _csv([*(slot.keys or slot.table.keys), *titles]),
        "rows": (
            _csv([*_label(slot, line, figures), *_cells(slot, line, figures, extras)]) for line in slot.rows
        ),
        "notes": ([*_parameters(slot, figures)] if quick else [], conditions, remarks),
    }


def _kind(figure: Figure) -> str:
    return "published" if figure.published else "quick" if figure.result.profile != "full" else "measured"


def sentences(figures: Figures) -> Iterator[str]:
    """Where the figures are from, by board, a sentence for each."""
    kinds: dict[str, list[str]] = {}
    for board, of_board in figures.items():
        for kind in sorted({_kind(figure) for figure in of_board.values()}):
            kinds.setdefault(kind, []).append(board)
    for kind, boards in sorted(kinds.items()):
        yield f"{_KINDS[kind]}: {', '.join(map(rst, boards))}."


def _quick(slot: Slot, figures: Figures) -> str:
    """What the caption of a table with figures of the quick profile says of them; "" for none."""
    whole = [(board, figure.result.profile != "full") for board, figure in _all(slot, figures)]
    boards = dict.fromkeys(board for board, is_quick in whole if is_quick)
    names = "" if all(is_quick for _, is_quick in whole) else f": {', '.join(boards)}"
    return f"{QUICK_MARK}{names})" if boards else ""


def _parameters(slot: Slot, figures: Figures) -> Iterator[str]:
    """The parameters of the quick profile's figures where they differ from the published ones."""
    quick = ((board, figure) for board, figure in _all(slot, figures) if _kind(figure) == "quick")
    pairs = ((board, ", ".join(_differing(slot, figure)) or "as published") for board, figure in quick)
    yield from dict.fromkeys(f"- {rst(board)}, quick profile: {rst(words)}" for board, words in pairs)


def _repeated(slot: Slot, figures: Figures) -> Iterator[str]:
    """How well the means are known that were measured over to know them: a line a board."""
    boards: dict[str, list[Figure]] = {}
    for board, figure in _all(slot, figures):
        if REPEAT in figure.conditions:
            boards.setdefault(board, []).append(figure)
    for board, of_board in boards.items():
        often = "; ".join(dict.fromkeys(str(figure.conditions[REPEAT]) for figure in of_board))
        widths = (anytime.half_width(figure.result.values(figure.key.metric)) for figure in of_board)
        widest = max((width for width in widths if width is not None), default=None)
        within = "" if widest is None else f", means within ±{widest:.1%} (95 %)"
        yield f"- {rst(board)}: {rst(often)}{within}"


def _differing(slot: Slot, figure: Figure) -> Iterator[str]:
    full = slot.table.module.profiles.get("full") if slot.table.module else None
    for case in full.cases if full else ():
        for name, published in case.params.items() if case.label == figure.key.case else ():
            if (given := figure.result.params.get(name, published)) != published:
                yield f"{name} {given} (published: {published})"
    if full and full.repeats > figure.count:
        yield f"{figure.count} times (published: {full.repeats})"


def _all(slot: Slot, figures: Figures) -> Iterator[tuple[str, Figure]]:
    lone = next(iter(figures), "")
    return ((column.board or lone, figure) for _, column, figure in slot.filled(figures))


def _label(slot: Slot, line: LayoutLine, figures: Figures) -> tuple[str, ...]:
    """A row's key cells; a label that says how many times was measured says how many it was."""
    cells = (figures_of(slot.table, column, line.case, figures) for column in slot.columns)
    count = max((f.count for of_cell in cells for f in of_cell), default=0)
    if not count or not slot.table.counts(line.case):
        return line.label
    return (slot.table.label_of(line.case, count),)


def _cells(slot: Slot, line: LayoutLine, figures: Figures, extras: Extras) -> list[str]:
    """The cells of a row."""
    texts = []
    for column in slot.columns:
        of_cell = figures_of(slot.table, column, line.case, figures)
        if not of_cell:
            texts.append(slot.table.empty.get(column.metric, ""))
        elif column.words:
            texts.append(rst(str(of_cell[0].conditions[column.metric])))
        else:
            before = figures_of(slot.table, column, line.case, extras.previous or {})
            board = column.board or next(iter(figures), "")
            before = [old for old in before if (board, old.key) not in extras.doubtful]
            pairs = itertools.zip_longest(of_cell, before[: len(of_cell)])
            cells = [cell_text(slot, new) + _extra(slot, new, old, extras, board) for new, old in pairs]
            texts.append(",".join(cells))
    while texts and not texts[-1] and line.width and len(texts) + len(line.label) > line.width:
        texts.pop()
    return texts


def cell_text(slot: Slot, figure: Figure) -> str:
    """A figure as its table prints it."""
    if figure.text:
        return figure.text
    several = figure.count != 1
    bounds = (figure.low, figure.high) if several else (None, None)
    text = figure_text(figure.mean, *bounds, slot.table.decimals)
    return f"{text} {rst(figure.unit)}" if slot.table.unit_in_cell else text


def _extra(slot: Slot, figure: Figure, before: Figure | None, extras: Extras, board: str) -> str:
    parts = []
    if extras.counts and figure.count:
        parts.append(f"n {figure.count}")
    if before and before.mean and before.unit == figure.unit:
        text = percent(figure.mean / before.mean - 1)
        way = "" if text[1:] == _NOTHING else _way(figure, before, board, extras.os)
        parts.append(f"{text} {way}".rstrip())
    if extras.outliers and figure.outliers:
        parts.append(counted(figure.outliers, "outlier"))
    return f" [{', '.join(parts)}]" if parts else ""


def _way(figure: Figure, before: Figure, board: str, os: str) -> str:
    """The direction of a change: better, worse, within the range of either figure or the usual change between
    the board's releases, or none.
    """
    better = judge.better(figure.key)
    if better is Direction.NONE:
        return ""
    for one, other in ((figure, before), (before, figure)):
        if other.low is not None and other.high is not None and other.low <= one.mean <= other.high:
            return "within its range"
    usual = scatter.between_releases(board, os, figure.key.benchmark, figure.key.metric)
    if usual is not None and abs(figure.mean / before.mean - 1) <= usual:
        return "within the scatter of releases"
    return "better" if (figure.mean > before.mean) == (better is Direction.HIGHER) else "worse"


def _notes(slot: Slot, figures: Figures) -> list[str]:
    """Notes under a table on partial measurements, and on measured errors of samples."""
    notes = []
    for line, column, figure in slot.filled(figures):
        row = rst(" ".join(filter(None, (column.board, *line.label))))
        notes += [f"- {row}: {rst(figure.flaw)}"] if figure.flaw else []
        within = figure.error
        notes += [] if within is None else [f"- {row}: each within {within:.2g} {rst(figure.unit)}"]
        taken = _energy(figure.result)
        notes += [f"- {row}: {rst(', '.join(taken))}"] if taken else []
    return list(dict.fromkeys(notes))


def _energy(result: Result) -> list[str]:
    """Means of power and energy of a row, in words."""
    names = dict.fromkeys(s.metric for s in result.samples if s.metric in energy.METRICS)
    units = {s.metric: s.unit for s in result.samples}
    return [
        f"{wording.metric(name)} {statistics.fmean(result.values(name)):.4g} {units[name]}" for name in names
    ]


def _csv(cells: Sequence[str]) -> str:
    return ",".join('"{}"'.format(one_line(cell).replace('"', '""')) for cell in cells)


def _modules(modules: Sequence[General]) -> list[str]:
    """The grid table of evaluation modules."""
    rows = [(rst(module.title), rst(module.name), rst(module.description)) for module in modules]
    rows.insert(0, ("Name", "Board", "Description"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [rule]
    for row in rows:
        lines += ["|" + "|".join(f" {c:<{w}} " for c, w in zip(row, widths, strict=True)) + "|", rule]
    lines[2] = rule.replace("-", "=")
    return lines
