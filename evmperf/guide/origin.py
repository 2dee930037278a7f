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
    boards: dict[str, set[bool]] = {}
    for board, figure in _all(slot, figures):
        boards.setdefault(board, set()).add(figure.result.profile != "full")
    if not any(True in kinds for kinds in boards.values()):
        return ""
    if all(kinds == {True} for kinds in boards.values()):
        return f"{QUICK_MARK})"
    names = ", ".join(board for board, kinds in boards.items() if True in kinds)
    return f"{QUICK_MARK}: {names})"


def parameters(slot: Slot, figures: Figures) -> Iterator[str]:
    """The parameters that figures of the quick profile were measured with, where they are others
    than the published ones.
    """
    said: dict[str, None] = {}
    for board, figure in _all(slot, figures):
        if kind_of(figure) == QUICK:
            words = ", ".join(_differing(slot, figure)) or "as published"
            said[f"- {rst(board)}, quick profile: {rst(words)}"] = None
    yield from said


def repeated(slot: Slot, figures: Figures) -> Iterator[str]:
    """How well the means are known that were measured over to know them: a line a board."""
    widths: dict[str, list[float]] = {}
    rounds: dict[str, dict[str, None]] = {}
    for board, figure in _all(slot, figures):
        if REPEAT in figure.conditions:
            rounds.setdefault(board, {})[str(figure.conditions[REPEAT])] = None
            width = anytime.half_width(figure.result.values(figure.key.metric))
            widths.setdefault(board, []).extend([] if width is None else [width])
    for board, often in rounds.items():
        known = widths[board]
        within = f", means within ±{max(known):.1%} (95 %)" if known else ""
        yield f"- {rst(board)}: {rst('; '.join(often))}{within}"


def measured(slot: Slot, figures: Figures) -> list[str]:
    """The boards that the figures of a table were measured on."""
    return list(dict.fromkeys(board for board, figure in _all(slot, figures) if not figure.published))


def _differing(slot: Slot, figure: Figure) -> Iterator[str]:
    module = slot.table.module
    full = module.profiles.get("full") if module else None
    if full is None:
        return
    for case in full.cases:
        if case.label != figure.key.case:
            continue
        for name, published in case.params.items():
            given = figure.result.params.get(name, published)
            if given != published:
                yield f"{name} {given} (published: {published})"
    if full.repeats > figure.count:
        yield f"{figure.count} times (published: {full.repeats})"


def _all(slot: Slot, figures: Figures) -> Iterator[tuple[str, Figure]]:
    lone = next(iter(figures), "")
    return ((column.board or lone, figure) for _, column, figure in slot.filled(figures))
