"""`evmperf import-guide` and `evmperf guide`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evmperf.model.errors import UsageError

if TYPE_CHECKING:
    from evmperf.guide.layout import Figures
    from evmperf.guide.writer import Extras
    from evmperf.runs.history import RunSource, StoredRun

_EXTRAS = ("counts", "delta", "outliers")


def add_parsers(commands: Any) -> None:
    """Add both commands."""
    _add_import(commands)
    _add_guide(commands)


def _add_import(commands: Any) -> None:
    parser = commands.add_parser(
        "import-guide",
        help="published guides as runs",
        description="Read performance guides in reStructuredText; every csv-table becomes results "
        "of the catalogue's benchmarks, one run a board. What is not known is reported by line and "
        "kept as it is.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, help="write the runs below this folder")
    parser.add_argument("--release", default="", help="where the title does not say")
    parser.add_argument("--strict", action="store_true", help="status 1 when anything is unknown")
    parser.set_defaults(func=_import)


def _import(options: argparse.Namespace) -> int:
    from evmperf.guide import importer  # noqa: PLC0415  # docutils is slow to import

    unknown = False
    for file in options.files:
        imported = importer.load(file, options.release)
        for problem in imported.problems:
            what = "table " if problem.table else ""
            print(f"{file} line {problem.line}: {what}not known: {problem.reason}", file=sys.stderr)
        unknown |= bool(imported.problems)
        boards = ", ".join(imported.results) or "no board"
        print(f"{file}: {imported.os} {imported.release}, {boards}: {imported.summary()}")
        if options.into:
            for folder in importer.store(imported, options.into):
                print(f"  {folder}")
    return 1 if unknown and options.strict else 0


def _add_guide(commands: Any) -> None:
    parser = commands.add_parser(
        "guide",
        help="render the performance guide of a release",
        description="Render results as a performance guide in reStructuredText.",
    )
    parser.add_argument("--release", required=True, help="SDK release, e.g. 11.00, or `newest`")
    parser.add_argument("--os", default="", help="Linux or RT-linux, where a release has both")
    parser.add_argument("--board", action="append", default=[], help="only this board (repeatable)")
    parser.add_argument(
        "--from", dest="source", default="results", metavar="DIR|influx|baselines",
        help="where the runs are (default: results)",
    )  # fmt: skip
    parser.add_argument("--like", type=Path, metavar="FILE", help="in that guide's layout")
    parser.add_argument(
        "--with", dest="extras", type=_extras, default=(), metavar="WHAT,...",
        help=f"beside the figures: {', '.join(_EXTRAS)}",
    )  # fmt: skip
    parser.add_argument("--plots", action="store_true", help="draw plots beside OUTPUT (needs -o)")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    parser.add_argument(
        "--html", type=Path, metavar="DIR", help="build web pages there, with plots, by Sphinx"
    )
    parser.add_argument("--pdf", type=Path, metavar="DIR", help="build a PDF there")
    parser.set_defaults(func=_guide)


def _extras(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if wrong := sorted(set(words) - set(_EXTRAS)):
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(_EXTRAS)}")
    return words


def _guide(options: argparse.Namespace) -> int:
    from evmperf.cli import sources  # noqa: PLC0415
    from evmperf.guide import html  # noqa: PLC0415

    built = options.html or options.pdf
    if built:
        options.plots = True
        options.output = options.output or built / "source" / "guide.rst"
        options.output.parent.mkdir(parents=True, exist_ok=True)
        for folder in (options.html, options.pdf):
            if folder and folder.resolve() == options.output.parent.resolve():
                raise UsageError(f"{folder}/ holds the guide's source: build in another folder")
    if options.plots and not options.output:
        raise UsageError("--plots needs a place for its files: name the guide's file with -o")
    with sources.opened(options.source) as source:
        title = _render(options, source)
    for target, pdf in ((options.html, False), (options.pdf, True)):
        if target:
            print(html.build(options.output, target, title, pdf))
    return 0


def _render(options: argparse.Namespace, source: RunSource) -> str:
    """Write the guide; returns its title."""
    from evmperf.guide import importer, layout, writer  # noqa: PLC0415
    from evmperf.published import dialect  # noqa: PLC0415
    from evmperf.published import releases as gather  # noqa: PLC0415

    there = gather.stored(source)
    chosen = gather.of_release(there, options.release, options.os, options.board)
    figures = gather.by_board(chosen)
    release, os = chosen[-1].run.release, chosen[-1].run.os or "Linux"
    if options.like:
        plan = layout.like(importer.load(options.like, release), figures)
    else:
        plan = layout.own(figures, dialect.of_release(release, os))
    extras = _what_extras(options, chosen, there, figures)
    head = writer.Head(release, os, gather.modules(figures))
    text = writer.render(plan, figures, head, extras)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return head.title


def _what_extras(
    options: argparse.Namespace, chosen: list[StoredRun], there: list[StoredRun], figures: Figures
) -> Extras:
    from evmperf.guide import plots, writer  # noqa: PLC0415
    from evmperf.published import releases as gather  # noqa: PLC0415

    previous = None
    if "delta" in options.extras:
        known = there if options.source == "baselines" else [*gather.published(), *there]
        run = chosen[-1].run
        before = gather.previous_release(known, run.release, run.os)
        virtual = gather.is_virtual(run)
        previous = gather.by_board(e for e in before if gather.is_virtual(e.run) == virtual)
    drawn = plots.draw(options.output, figures, chosen) if options.plots else None
    return writer.Extras(
        counts="counts" in options.extras,
        outliers="outliers" in options.extras,
        previous=previous,
        plots=drawn,
    )
