"""`evmperf board` and `evmperf doctor`: board files, and whether a board and its lab are ready."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from evmperf.boards import board as boards
from evmperf.boards import copying, reference
from evmperf.commands.cli.arguments import command, tell
from evmperf.commands.cli.terminal import note
from evmperf.lab import boardcheck
from evmperf.lab.desk import boardfile as foundfile
from evmperf.lab.doctor.examination import Examination
from evmperf.lab.doctor.finding import CheckFinding, CheckOutcome, exit_status
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.pages import look

_WIDTH = 14


@command("board check")
def _check(options: argparse.Namespace) -> int:
    bad = 0
    for given in options.boards:
        try:
            file = boards.find(given)
            board = boardfile.named(str(file))
            found = boardcheck.check(file)
        except UsageError as error:
            found = [str(error)]
        bad += bool(found)
        for sentence in found:
            tell(sentence)
        if not found:
            print(look.render("commands/cli/board.txt.j2", file=file, board=board), end="")
    return ExitStatus.USAGE if bad else 0


@command("board schema")
def _schema(_: argparse.Namespace) -> None:
    print(json.dumps(reference.schema(), indent=1))


@command("board options")
def _options(_: argparse.Namespace) -> None:
    print(reference.table(), end="")


@command("board new")
def _new(options: argparse.Namespace) -> None:
    folder = options.into or (Path("env") if Path("env").is_dir() else Path())
    if options.found:
        newest = options.found == "desk"
        found = foundfile.newest(Path("results") / "desk") if newest else Path(options.found)
        file = foundfile.keep(found, folder, options.name, {"title": options.title})
        first = "settle its lines marked Decide"
    elif options.like:
        file = copying.write(boards.find(options.like), folder, options.name, options.title)
        first = "edit its description, features, devices and addresses"
    else:
        file = foundfile.blank(folder, options.name, options.title)
        first = "fill in its marked lines"
    print(f"{file}: {first}, then run evmperf board check {file}")


@command("doctor")
def _doctor(options: argparse.Namespace) -> int:
    board = boardfile.named(options.board)
    examination = Examination(
        board, options.coordinator, options.console, (lambda _: None) if options.json else note
    )
    found: list[CheckFinding] = []
    for finding in examination.findings():
        found.append(finding)
        if not options.json:
            word = "-" if finding.outcome is CheckOutcome.UNCHECKED else finding.outcome
            print(f"{word:<5}{finding.step:<{_WIDTH}} {finding.text}", flush=True)
    if options.json:
        print(json.dumps([asdict(finding) | {"kind": finding.kind or ""} for finding in found], indent=1))
        return exit_status(found)
    count = {outcome: sum(f.outcome is outcome for f in found) for outcome in CheckOutcome}
    print(
        f"{board.name}: {count[CheckOutcome.OK]} ok, {count[CheckOutcome.NOTE]} notes, "
        f"{count[CheckOutcome.BAD]} bad, {count[CheckOutcome.UNCHECKED]} not checked"
    )
    return exit_status(found)
