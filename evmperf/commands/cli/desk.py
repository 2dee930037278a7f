"""`evmperf desk`: one person, one board, one cable."""

import argparse
import getpass
import os
import sys
from pathlib import Path

import msgspec

from evmperf.commands.app import desk, why
from evmperf.commands.app.desk import FindBoard, FoundBoard
from evmperf.commands.cli.arguments import argument, command, filled, show, tell
from evmperf.commands.cli.terminal import own
from evmperf.judge.published import source
from evmperf.lab.desk import host
from evmperf.lab.desk.finding import Noted
from evmperf.lab.desk.identity import PasswordWanted
from evmperf.measure.runs import spool
from evmperf.model.concealing import learn
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.outlets import plain
from evmperf.model.results import Status
from evmperf.publish.pages import look
from evmperf.publish.report import page, summary


@command(
    "desk",
    argument("address", nargs="?", default="", metavar="root@HOST[:PORT]"),
    argument("--lg-env", default="", metavar="FILE", help="an existing board file"),
    argument(
        "--port", action="append", default=[], dest="ports", metavar="DEVICE", help="only this serial port"
    ),
    argument("--key", default="", metavar="FILE", help="private key for SSH"),
    argument(
        "--user", default="root", help="who logs in on the console; another than root gets root by sudo"
    ),
    argument(
        "--power",
        default="none",
        choices=["none", "hand", "reset"],
        help="how the board boots: not at all, by your hand, by `reboot` (default: none)",
    ),
    argument(
        "--tester",
        default="",
        metavar="local|HOST",
        help=(
            "the other end of the board's network cable: this machine (local, local:INTERFACE), "
            "or one over SSH"
        ),
    ),
    argument("--yes", action="store_true", help="measure without asking"),
    argument("--results", default="results", metavar="FOLDER", help="for runs and the board file"),
    argument("-k", default="", dest="keyword", metavar="WORDS", help="as pytest's"),
)
def _desk(options: argparse.Namespace) -> int:
    """Finds the board on this desk, shows its identity and possible measurements, asks, and runs
    those that overwrite nothing, in minutes.

      evmperf desk                        the board whose console is on a USB serial port
      evmperf desk root@192.168.1.20      a board on the network; with --port its console, too
      evmperf desk --lg-env my-board      a board that has a file already

    evmperf types a newline on each serial port and logs in as root. It writes only to the board's
    /tmp, and switches its power only with --power. Another user works through sudo.
    """
    try:
        board = desk.named(options.lg_env) if options.lg_env else _find(options)
    except desk.NoBoard as error:
        tell(str(error))
        return ExitStatus.NOTHING
    text = plain(look.render("commands/cli/desk.txt.j2", found=board))
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        for words in (plain(words) for words, spoils in board.state if spoils):
            text = text.replace(words, f"\033[31m{words}\033[0m")
    print(text, file=own(sys.stdout))
    if any(name.startswith("boot_time") for name in board.can):
        try:
            host.real_time()
        except Noted as note:
            print(f"This machine: {note}")
    if not board.can:
        raise UsageError(f"nothing can be measured on {board.where} as it is: see above")
    if not options.yes and not _wanted():
        print(f"Nothing was measured. Later: evmperf desk --lg-env {board.file} --yes")
        return 0
    status, run = desk.measure(board.file, options.results, options.keyword)
    if run:
        _end(run)
    return status


def _end(folder: Path) -> None:
    """Show a run's few figures, that which is furthest from TI's, what failed, and the page."""
    run, results = spool.read_run(folder), spool.read_results(folder)
    answers = why.explain(folder).answers if results else ()
    about = {
        "run": run,
        "lines": tuple(summary.headlines(results, source.baseline(run))),
        "furthest": max(answers, key=lambda one: one.times, default=None),
        "page": folder / page.NAME,
        "failed": [r for r in results if r.failures and r.status is not Status.MEASURED],
    }
    print(look.render("commands/cli/desk_end.txt.j2", end=about, key=Key), end="")


def _wanted() -> bool:
    """Whether the person at the terminal wants to measure now."""
    if not sys.stdin.isatty():
        return False
    return input("Measure now? [Y/n] ").strip().lower() in ("", "y", "yes")


def _find(options: argparse.Namespace) -> FoundBoard:
    request = filled(FindBoard, options, folder=Path(options.results) / "desk")
    try:
        return desk.find(request, show)
    except PasswordWanted as error:
        if not sys.stdin.isatty():
            raise
        print(f"{error}.")
        password = getpass.getpass(f"Password of {options.user}: ")
        learn({"user": options.user, "password": password})
        return desk.find(msgspec.structs.replace(request, password=password), show)
