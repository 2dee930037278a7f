"""Published performance guides, read: `evmperf import-guide`."""

import argparse
from pathlib import Path

from evmperf.commands.cli.arguments import argument, command
from evmperf.commands.cli.terminal import note
from evmperf.model.exits import ExitStatus
from evmperf_guides import importer
from evmperf_guides.importer import ImportedGuide


@command(
    "import-guide",
    argument("files", nargs="+", type=Path, metavar="FILE"),
    argument("--into", type=Path, help="write the runs below this folder"),
    argument("--release", default="", help="if the title does not name it"),
    argument(
        "--os",
        default="",
        choices=["Linux", "RT-linux"],
        help="if title, headings and file name do not name it",
    ),
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
    read = ((name, guide) for name in options.files for guide in importer.load_all(name, *from_options))
    for file, imported in read:
        _report(file, imported)
        unknown |= bool(imported.unknown)
        boards = ", ".join(imported.results) or "no board"
        print(f"{file}: {imported.os} {imported.release}, {boards}: {imported.summary()}")
        if options.into:
            for folder in importer.store(imported, options.into):
                print(f"  {folder}")
    return ExitStatus.FAILED if unknown and options.strict else ExitStatus.OK


def _report(file: Path, imported: ImportedGuide) -> None:
    """Say what was not read, and what was and is doubtful, by line."""
    for problem in imported.problems:
        what = "remark" if problem.kept else "table not known" if problem.table else "not read"
        note(f"{file} line {problem.line}: {what}: {problem.reason}")
