"""`evmperf board`: board files, and what one is good for."""

import argparse
import json
from collections import Counter
from pathlib import Path

from evmperf.benchmarks.catalogue import benchmarks
from evmperf.boards import board as boards
from evmperf.boards import copying, vocabulary
from evmperf.boards.board import Board
from evmperf.commands.cli.arguments import argument, command, either, group, tell
from evmperf.lab import boardcheck
from evmperf.lab.desk import boardfile as foundfile
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.pages import look

group(
    "board",
    """Board files (docs/add-a-board.md).

  evmperf board new mine                          an empty file, to be filled in
  evmperf board new am69-sk --like am64x          a copy, to be edited
  evmperf board new ours --from-labgrid lab.yaml  options beside a lab's own file
  evmperf board new mine --from desk              the board that `evmperf desk` found
  evmperf board check lab.yaml                    what any env file of Labgrid's is good for
  evmperf board schema > board.schema.json        for an editor's completion
""",
)


@command(
    "board check",
    argument("boards", nargs="+", metavar="FILE", help="an env file of Labgrid's, as for pytest --lg-env"),
    argument("--board", type=Path, metavar="FILE", help="evmperf's options for it, in a file of their own"),
    listed="say what an env file is good for, without a board",
)
def _check(options: argparse.Namespace) -> int:
    """Says what any env file of Labgrid's is good for: drivers, strategy, console, the rows that can be
    measured with it now, and the line that would add others. Exit status 4: nothing can be measured.
    """
    bad = 0
    for given in options.boards:
        try:
            file = boards.find(given)
            board = boardfile.named(str(file), options.board)
            found = boardcheck.check(board)
        except UsageError as error:
            found = boardcheck.Checked([str(error)])
        for sentence in (*found.mistakes, *found.remarks):
            tell(sentence)
        bad += bool(found.mistakes)
        if not found.mistakes:
            rows, features, reasons = _rows(board)
            page = {"strategy": found.strategy, "rows": rows, "features": features, "reasons": reasons}
            print(look.render("commands/cli/board.txt.j2", file=file, board=board, **page), end="")
    return ExitStatus.USAGE if bad else 0


def _rows(board: Board) -> tuple[int, Counter[str], Counter[str]]:
    """How many rows the board can measure by its file, and how many not: those of features that the file does
    not name, and others by their reason.
    """
    reasons: Counter[str] = Counter()
    features: Counter[str] = Counter()
    for benchmark in benchmarks().values():
        for case in benchmark.cases(board.options.board.profile):
            unnamed = not {benchmark.name, benchmark.driver} & {*board.options.absent, *board.features}
            if unnamed:
                features[benchmark.driver] += 1
            else:
                reasons[benchmark.unsupported(board, case)] += 1
    return reasons.pop("", 0), features, reasons


@command("board schema")
def _schema(_: argparse.Namespace) -> None:
    """print a JSON Schema of board files, for editors"""
    print(json.dumps(vocabulary.schema(), indent=1))


@command("board options")
def _options(_: argparse.Namespace) -> None:
    """print the table of all options (Markdown)"""
    print(vocabulary.table(), end="")


@command(
    "board new",
    argument("name", help="of the file, without .yaml, and of the board, as in the guides"),
    either(
        argument("--like", default="", metavar="BOARD", help="the most similar board"),
        argument(
            "--from",
            default="",
            dest="origin",
            metavar="desk|FILE",
            help="the board that `evmperf desk` found last, or the file that it wrote",
        ),
        argument(
            "--from-labgrid",
            type=Path,
            dest="labgrid",
            metavar="FILE",
            help="evmperf's options for this env file, as a file for --board",
        ),
    ),
    argument("--title", default="", help="as in the guides' table of modules"),
    argument("-o", "--into", type=Path, metavar="FOLDER", help="default: env/, or here without one"),
)
def _new(options: argparse.Namespace) -> None:
    """begin a board file"""
    folder = options.into or (Path("env") if Path("env").is_dir() else Path())
    if options.labgrid:
        file = copying.beside(boardfile.named(str(options.labgrid)), folder, options.name, options.title)
        command = f"evmperf board check {options.labgrid} --board {file}"
        print(f"{file}: take the sections that the board has, fill in their values, then run {command}")
        return
    if options.origin:
        newest = options.origin == "desk"
        desk_file = foundfile.newest(Path("results") / "desk") if newest else Path(options.origin)
        file = foundfile.keep(desk_file, folder, options.name, {"title": options.title})
        first = "settle its lines marked Decide"
    elif options.like:
        file = copying.write(boards.find(options.like), folder, options.name, options.title)
        first = "edit its description, features, devices and addresses"
    else:
        file = foundfile.blank(folder, options.name, options.title)
        first = "fill in its marked lines"
    print(f"{file}: {first}, then run evmperf board check {file}")
