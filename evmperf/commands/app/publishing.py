"""A guide made of runs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from evmperf.commands.app import sources
from evmperf.guides.published import releases, steady
from evmperf.guides.published import source as published
from evmperf.guides.reading import conditions, importer
from evmperf.measure.runs.history import GUIDE, StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.publish.guide import layout, writer
from evmperf.publish.guide.layout import Figures, Layout
from evmperf.publish.guide.writer import Extras, Head

_EXTRAS = ("counts", "delta", "outliers")
"""What may stand beside the figures of a guide."""


class WriteGuide(msgspec.Struct, frozen=True, kw_only=True):
    """Write the guide of a release (or `newest`), and of these boards if any, from the runs of a source into
    a file. `like` is a guide whose layout it gets; `extras` are counts, delta and outliers.
    """

    release: str
    source: str
    output: str = ""
    os: str = ""
    board: tuple[str, ...] = ()
    like: str = ""
    extras: tuple[str, ...] = ()


def guide(request: WriteGuide) -> tuple[str, Head, Layout]:
    """The text of a guide, its cover and its layout; with an `output` they are written, and the figures'
    conditions beside them. Raises UsageError for an unknown release or extra.
    """
    if wrong := sorted(set(request.extras) - set(_EXTRAS)):
        raise UsageError(f"{wrong[0]!r} is not one of {', '.join(_EXTRAS)}")
    with sources.opened(request.source, samples=False) as source:
        stored = releases.stored(source)
        chosen = releases.of_release(stored, request.release, request.os, request.board)
        figures = releases.by_board(chosen)
        # A board that was measured in U-Boot alone tells neither.
        release = next((entry.run.release for entry in reversed(chosen) if entry.run.release), "")
        os = next((entry.run.os for entry in reversed(chosen) if entry.run.os), "Linux")
        if request.like:
            plan = layout.like(importer.load(Path(request.like), release), figures)
        else:
            plan = layout.own(figures)
        extras = _extras(request, chosen, stored, figures)
        facts = tuple(_facts(figures, chosen, extras))
        head = Head(release, os, releases.modules(figures), tuple(figures), facts)
        text = writer.render(plan, figures, head, extras)
        if request.output:
            Path(request.output).write_text(text, encoding="utf-8")
            conditions.write(Path(request.output), figures, [entry.run for entry in chosen])
    return text, head, plan


def _facts(figures: Figures, chosen: list[StoredRun], extras: Extras) -> Iterator[str]:
    yield from writer.sentences(figures)
    days = sorted(
        datetime.fromtimestamp(entry.run.started_ns / 1e9, UTC).date().isoformat()
        for entry in chosen
        if entry.run.kind != GUIDE
    )
    if days:
        first, last = days[0], days[-1]
        yield f"Measured {f'on {first}' if first == last else f'from {first} to {last}'}."
    if extras.previous:
        yield f"Changes are shown since release {extras.before}."


def _extras(
    request: WriteGuide, chosen: list[StoredRun], stored: list[StoredRun], figures: Figures
) -> Extras:
    previous, last = None, ""
    doubtful: frozenset[tuple[str, Key]] = frozenset()
    if "delta" in request.extras:
        guides = stored if request.source in ("baselines", "published") else [*published.guides(), *stored]
        before = [
            previous_run
            for entry in chosen
            if (previous_run := releases.previous_release(guides, entry.run)) is not None
        ]
        previous = releases.by_board(before)
        sides = ((before, previous), (chosen, figures))
        doubtful = frozenset(
            (entry.run.board, key)
            for entries, guides in sides
            for entry in entries
            for key in steady.doubts(entry.run, guides.get(entry.run.board, {}))
        )
        last = " and ".join(dict.fromkeys(entry.run.release for entry in before))
    return Extras(
        counts="counts" in request.extras,
        outliers="outliers" in request.extras,
        previous=previous,
        before=last,
        os=chosen[0].run.os if chosen else "",
        doubtful=doubtful,
    )
