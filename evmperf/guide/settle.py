"""What a table is where its own words leave it open: its section's order and the record say."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.guide import match
from evmperf.guide.match import Match
from evmperf.guide.source import Source, SourceTable, caption
from evmperf.guide.witness import Witness
from evmperf.published import declared


@dataclass(frozen=True)
class Settled:
    """What a table is, and why nothing else; or None, and why it is not known."""

    match: Match | None
    why: str = ""
    candidates: tuple[Match, ...] = ()


def captions(source: Source) -> None:
    """Captions of sections where their order tells nothing: those that more tables agree with; a
    table keeps its own error where both ways are as good.
    """
    for here in source.unsure:
        mine = [table for table in here if isinstance(table, SourceTable)]
        known = {}
        for style in ("before", "after"):
            caption(here, style)
            known[style] = sum(match.fits_caption(table) for table in mine)
        best = max(known, key=lambda style: known[style])
        caption(here, best)
        if len(set(known.values())) == 1:
            for table in mine:
                table.error = table.error or (
                    "nothing tells whether the `Table:` lines of its section are captions of the "
                    "tables before or after them"
                )


def tables(there: Sequence[SourceTable], witness: Witness) -> list[Settled]:
    """What each table of a guide is."""
    found = [_by_words(table) for table in there]
    numbers = [n for n, one in enumerate(found) if one.candidates]
    # Without captions, tables that may be any of as many stand in the order of all guides.
    alike = itertools.groupby(numbers, lambda n: (there[n].section, there[n].rubric, _names(found[n])))
    for (_, _, names), group in alike:
        mine = list(group)
        ordered = sorted(names, key=list(declared.tables()).index)
        for place, number in enumerate(mine):
            table, candidates = there[number], found[number].candidates
            by_record = witness.table(table, candidates)
            if by_record:
                why = "no caption, and next to this release its boards have only that, with such figures"
                found[number] = Settled(by_record, why)
            elif len(mine) == len(names) and not any(there[n].caption for n in mine):
                (by_place,) = (m for m in candidates if m.table.benchmark == ordered[place])
                why = f"no caption; the {len(mine)} tables like it are taken in the order of all guides"
                found[number] = Settled(by_place, why)
    return found


def _by_words(table: SourceTable) -> Settled:
    try:
        return Settled(match.identify(table))
    except match.Unknown as unknown:
        return Settled(None, str(unknown), unknown.candidates)


def _names(settled: Settled) -> tuple[str, ...]:
    return tuple(sorted(m.table.benchmark for m in settled.candidates))
