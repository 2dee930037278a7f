"""Published performance guides, read and reviewed: `evmperf import-guide`, `evmperf guide review`."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from evmperf.commands.cli.arguments import argument, command
from evmperf.commands.cli.terminal import note
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.units import counted
from evmperf_guides import importer, present
from evmperf_guides.importer import ImportedGuide
from evmperf_guides.review import GuideReview, review


@command(
    "import-guide",
    argument("files", nargs="+", type=Path, metavar="FILE"),
    argument("--into", type=Path, help="write the runs below this folder"),
    argument("--release", default="", help="if the title does not name it"),
    argument("--os", default="", choices=["Linux", "RT-linux"], help="if neither text nor file name has it"),
    argument("--board", default="", help="for tables that name no board"),
    argument("--strict", action="store_true", help="exit with status 1 if anything is unknown"),
)
def _import(options: argparse.Namespace) -> int:
    """Read performance guides in reStructuredText; every csv-table becomes results of the catalogue's
    benchmarks, one run per board. Unknown tables are not read: each is reported with its line, and kept
    as it is.
    """
    unknown = False
    from_options = (options.release, options.os, options.board)
    read = ((name, guide) for name in options.files for guide in importer.load(name, *from_options))
    for file, imported in read:
        for problem in imported.problems:
            what = "remark" if problem.kept else "table not known" if problem.table else "not read"
            note(f"{file} line {problem.line}: {what}: {problem.reason}")
        unknown |= bool(imported.unknown)
        boards, lost = ", ".join(imported.results) or "no board", imported.unknown_cells
        about = f"{counted(len(imported.matches), 'table')}, {counted(imported.cells, 'cell')}, "
        about += f"{imported.cells - lost} known, {lost} unknown, {counted(len(imported.remarks), 'remark')}"
        print(f"{file}: {imported.os} {imported.release}, {boards}: {about}")
        if options.into:
            for folder in importer.store(imported, options.into):
                print(f"  {folder}")
    return ExitStatus.FAILED if unknown and options.strict else ExitStatus.OK


_PATCH, _CONFLICT = re.compile(r"diff --git |--- |Index: |From [0-9a-f]{40} "), re.compile(r"(?m)^[<>]{7} ")


@command(
    "guide-review",
    argument("new", type=Path, metavar="NEW.rst"),
    argument("olds", nargs="*", type=Path, metavar="OLD.rst", help="older guides (default: the record's)"),
    argument("--release", default="", help="of the new guide, if its title does not name it"),
    argument("--html", type=Path, metavar="FILE", help="write a page (-: to stdout)"),
    argument("--markdown", type=Path, metavar="FILE", help="write it for a merge request (-: to stdout)"),
    argument("--json", type=Path, metavar="FILE", help="write every remark, folded ones too"),
    epilog="Exit status: 0 if there is nothing to ask, 1 for questions, 4 for a file that cannot be read.",
)
def _review(options: argparse.Namespace) -> int:
    """Ask about a guide what a reviewer asks before it is published: jumps beyond what releases moved by,
    exchanged and copied rows, noise, figures that the guide itself or the hardware contradicts, what is
    missing.
    """
    text = _text(options.new)
    olds = [guide for file in options.olds if _text(file) for guide in importer.load(file)]
    reviewed = of_text(text, str(options.new), options.release, olds)
    files = (options.html, options.markdown, options.json)
    for file, make in zip(files, (present.as_html, present.as_markdown, present.as_json), strict=True):
        if str(file) == "-":
            sys.stdout.write(make(reviewed))
        elif file:
            file.write_text(make(reviewed), encoding="utf-8")
    if Path("-") not in files:
        print("\n".join(present.lines(reviewed)))
    return ExitStatus.FAILED if reviewed.shown else ExitStatus.OK


def of_text(text: str, name: str, release: str = "", olds: Sequence[ImportedGuide] = ()) -> GuideReview:
    """Review a guide's text; raises UsageError for one that is none, or of which nothing can be read."""
    imported, *others = importer.interpret(text, name, release)
    if others:
        note(f"{name}: holds {counted(len(others), 'further guide')}: only the first is reviewed")
    if not imported.results:
        raise UsageError(f"{name}: no table of it can be read: `evmperf import-guide {name}` says why")
    return review(imported, text, olds)


def told(text: str, name: str) -> bool:
    """Print the review of a guide that runs make, and what measures a case again; whether it asks any."""
    reviewed = of_text(text, name)
    print("\n".join(present.lines(reviewed, cases=True)), file=sys.stderr)
    return bool(reviewed.shown)


def _text(file: Path) -> str:
    """The text of a guide; raises UsageError, with the line, for a patch or a merge that is not done."""
    text = inputs.text(file, 4 * limits.MIB)  # no guide has a tenth of that
    if _PATCH.match(text):
        raise UsageError(f"{file} line 1: is a patch, not a guide: apply it, and review the guide")
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise UsageError(f"{file} line {line}: has conflict markers: resolve them first")
    return text
