"""`evmperf guide`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from evmperf.commands.app import sources
from evmperf.commands.cli.arguments import argument, command, tell
from evmperf.judge.published import releases
from evmperf.judge.published import source as published
from evmperf.measure.runs.history import GUIDE, StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.plugins import guide_reader
from evmperf.model.units import counted
from evmperf.publish.guide import conditions, layout, writer
from evmperf.publish.guide.layout import Figures, Layout
from evmperf.publish.guide.writer import Extras, Head

_EXTRAS = ("counts", "delta", "outliers")
"""What may stand beside the figures of a guide."""


@command(
    "guide",
    argument("--release", required=True, help="SDK release, e.g. 11.00, or `newest`"),
    argument("--os", default="", help="Linux or RT-linux, where a release has both"),
    argument("--board", action="append", default=[], metavar="BOARD", help="only this board (repeatable)"),
    argument(
        "--from",
        default="results",
        dest="source",
        metavar="DIR|influx|baselines|published",
        help="where the runs are (default: results)",
    ),
    argument("--like", type=Path, metavar="FILE", help="in that guide's layout"),
    argument(
        "--with",
        type=lambda text: [word.strip() for word in text.split(",")],
        default=[],
        dest="extras",
        metavar="WHAT,...",
        help="beside the figures: counts, delta, outliers",
    ),
    argument(
        "--review", action="store_true", help="ask first what a reviewer would ask (needs guide-reader)"
    ),
    argument("-o", "--output", type=Path, help="default: standard output"),
    argument("--html", type=Path, metavar="DIR", help="build web pages there, by Sphinx"),
    argument("--pdf", type=Path, metavar="DIR", help="print the page into a PDF there"),
    epilog="""Exit status: 1 if the guide of --like has unknown tables, or --review asks.
    `evmperf guide review NEW.rst [OLD.rst ...]` reviews a written guide: see its --help.""",
)
def _guide(options: argparse.Namespace) -> int:
    """Render results as a performance guide in reStructuredText."""
    built = options.html or options.pdf
    if built:
        options.output = options.output or built / "source" / "guide.rst"
        options.output.parent.mkdir(parents=True, exist_ok=True)
        for folder in (options.html, options.pdf):
            if folder and folder.resolve() == options.output.parent.resolve():
                raise UsageError(f"{folder}/ holds the guide's source: build in another folder")
    head, plan, text = _written(options)
    if built:
        _build(options, head)
    asked = options.review and guide_reader("review", "--review")(text, "the guide")
    return max(_left_out(options, plan), ExitStatus.FAILED if asked else ExitStatus.OK)


def _written(options: argparse.Namespace) -> tuple[Head, Layout, str]:
    """Write a guide, with an output file its figures' conditions beside it; its cover and its layout."""
    if wrong := sorted(set(options.extras) - set(_EXTRAS)):
        raise UsageError(f"{wrong[0]!r} is not one of {', '.join(_EXTRAS)}")
    with sources.opened(options.source, samples=False) as source:
        stored = releases.stored(source)
        chosen = releases.of_release(stored, options.release, options.os, options.board)
        figures = releases.by_board(chosen)
        # A board that was measured in U-Boot alone tells neither.
        release = next((entry.run.release for entry in reversed(chosen) if entry.run.release), "")
        os = next((entry.run.os for entry in reversed(chosen) if entry.run.os), "Linux")
        if options.like:
            plan = layout.like(guide_reader("layout", "--like")(options.like, release), figures)
        else:
            plan = layout.own(figures)
        extras = _extras(options, chosen, stored, figures)
        facts = tuple(_facts(figures, chosen, extras))
        head = Head(release, os, releases.modules(figures), tuple(figures), facts)
        text = writer.render(plan, figures, head, extras)
        if options.output:
            options.output.write_text(text, encoding="utf-8")
            conditions.write(options.output, figures, [entry.run for entry in chosen])
        else:
            sys.stdout.write(text)
    return head, plan, text


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
    options: argparse.Namespace, chosen: list[StoredRun], stored: list[StoredRun], figures: Figures
) -> Extras:
    previous, last = None, ""
    doubtful: frozenset[tuple[str, Key]] = frozenset()
    if "delta" in options.extras:
        guides = stored if options.source in ("baselines", "published") else [*published.guides(), *stored]
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
            for key in published.doubts(entry.run, guides.get(entry.run.board, {}))
        )
        last = " and ".join(dict.fromkeys(entry.run.release for entry in before))
    return Extras(
        counts="counts" in options.extras,
        outliers="outliers" in options.extras,
        previous=previous,
        before=last,
        os=chosen[0].run.os if chosen else "",
        doubtful=doubtful,
    )


def _build(options: argparse.Namespace, head: Head) -> None:
    from evmperf.publish.guide import page  # noqa: PLC0415  # Sphinx is slow to import

    with tempfile.TemporaryDirectory(prefix="evmperf-guide-") as scratch:
        built = page.build(options.output, options.html or Path(scratch), head)
        if options.html:
            print(built)
        if options.pdf:
            print(page.printed(built, options.pdf))


def _left_out(options: argparse.Namespace, plan: Layout) -> int:
    """Say what of the guide to be like is not in the new one; returns the exit status."""
    if plan.unmeasured:
        names = ", ".join(dict.fromkeys(plan.unmeasured))
        tell(f"{options.like}: no figures for: {names}")
    if not plan.unread:
        return ExitStatus.OK
    tables = f"{counted(len(plan.unread), 'table')} {'is' if len(plan.unread) == 1 else 'are'}"
    tell(f"{options.like}: {tables} unknown and left out: {'; '.join(plan.unread)}")
    return ExitStatus.FAILED
