"""What a guide says of where its figures are from: measured or published, and with which
parameters, where these are not the published ones.
"""

from collections.abc import Iterator

from evmperf.guide.layout import Figures, Slot
from evmperf.guide.source import QUICK_MARK
from evmperf.model import anytime
from evmperf.model.figures import Figure
from evmperf.model.outlets import rst
from evmperf.model.results import REPEAT

MEASURED, PUBLISHED, QUICK = "measured", "published", "quick"
SENTENCES = {
    MEASURED: "Measured by evmperf",
    PUBLISHED: "As TI published them, not measured by evmperf",
    QUICK: "Measured by evmperf with the quick profile, with the parameters given at each table",
}


def kind_of(figure: Figure) -> str:
    """Where a figure is from."""
    if figure.published:
        return PUBLISHED
    return QUICK if figure.result.profile != "full" else MEASURED


def sentences(figures: Figures) -> Iterator[str]:
    """Where the figures are from, by board, a sentence for each."""
    kinds: dict[str, list[str]] = {}
    for board, known in figures.items():
        for kind in sorted({kind_of(figure) for figure in known.values()}):
            kinds.setdefault(kind, []).append(board)
    for kind, boards in sorted(kinds.items()):
        yield f"{SENTENCES[kind]}: {', '.join(map(rst, boards))}."


def quick(slot: Slot, figures: Figures) -> str:
    """What the caption of a table with figures of the quick profile says of them; "" for none."""
    there = [(board, figure.result.profile != "full") for board, figure in _all(slot, figures)]
    boards = dict.fromkeys(board for board, is_quick in there if is_quick)
    names = "" if all(is_quick for _, is_quick in there) else f": {', '.join(boards)}"
    return f"{QUICK_MARK}{names})" if boards else ""


def parameters(slot: Slot, figures: Figures) -> Iterator[str]:
    """The parameters that figures of the quick profile were measured with, where they are others
    than the published ones.
    """
    quick = ((board, figure) for board, figure in _all(slot, figures) if kind_of(figure) == QUICK)
    said = ((board, ", ".join(_differing(slot, figure)) or "as published") for board, figure in quick)
    yield from dict.fromkeys(f"- {rst(board)}, quick profile: {rst(words)}" for board, words in said)


def repeated(slot: Slot, figures: Figures) -> Iterator[str]:
    """How well the means are known that were measured over to know them: a line a board."""
    boards: dict[str, list[Figure]] = {}
    for board, figure in _all(slot, figures):
        if REPEAT in figure.conditions:
            boards.setdefault(board, []).append(figure)
    for board, known in boards.items():
        often = "; ".join(dict.fromkeys(str(figure.conditions[REPEAT]) for figure in known))
        widths = (anytime.half_width(figure.result.values(figure.key.metric)) for figure in known)
        widest = max((width for width in widths if width is not None), default=None)
        within = "" if widest is None else f", means within ±{widest:.1%} (95 %)"
        yield f"- {rst(board)}: {rst(often)}{within}"


def measured(slot: Slot, figures: Figures) -> list[str]:
    """The boards that the figures of a table were measured on."""
    return list(dict.fromkeys(board for board, figure in _all(slot, figures) if not figure.published))


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
