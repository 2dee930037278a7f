"""Arguments and news that several commands share."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evmperf.boards import board as boards
from evmperf.keeping.wanted import coordinator_address
from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.replies import Remark, Reply

A_BOARD = "a board file, as for pytest --lg-env"
A_RUN = "a run's folder, its name below --results or the beginning of it, `last`, or `last~1`"


_SHARED: dict[str, dict[str, Any]] = {
    "board": {"metavar": "BOARD", "help": A_BOARD},
    "--board": {"help": A_BOARD},
    "--coordinator": {"default": "", "help": "Labgrid's coordinator, HOST[:PORT] [LG_COORDINATOR]"},
    "--identity": {"default": "", "help": "a LAVA server by its name in lavacli's configuration"},
    "--json": {"action": "store_true", "help": "print JSON for programs"},
    "--profile": {"choices": ("full", "quick"), "default": "", "help": "default: the board's"},
    "--results": {"type": Path, "default": Path("results"), "help": "folder of runs (default: results)"},
}


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], about: str, *shared: str, **more: Any
) -> argparse.ArgumentParser:
    """Add a command that calls `run`, with its description and the `shared` arguments of that name.

    Texts with line breaks are shown as they are, other texts are filled. In a group of commands
    `help` is the line for the list, which is also the description where `about` is "".
    """
    more = {"description": about or more.get("help"), "formatter_class": _Format, **more}
    parser: argparse.ArgumentParser = commands.add_parser(name, **more)
    parser.set_defaults(func=run)
    for argument in shared:
        parser.add_argument(argument, **_SHARED[argument])
    return parser


def group(commands: Any, name: str, about: str) -> Any:
    """Add a command that consists of sub-commands; returns where these are added."""
    parser = commands.add_parser(name, description=about, formatter_class=_Format)
    return parser.add_subparsers(metavar="COMMAND", required=True)


class _Format(argparse.RawDescriptionHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def add_run(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Which run, and where it is."""
    parser.add_argument("run", nargs=nargs, help=A_RUN)
    add_results(parser)


def add_results(parser: argparse.ArgumentParser) -> None:
    """Where the runs are."""
    parser.add_argument("--results", **_SHARED["--results"])


def add_from(parser: argparse.ArgumentParser) -> None:
    """Add `--from`."""
    parser.add_argument(
        "--from",
        dest="source",
        metavar="DIR|history|influx|published",
        help="where earlier runs are (default: the folder of --results and the lab's store)",
    )


def add_boots(parser: argparse.ArgumentParser) -> None:
    """How many boots a round has."""
    about = "cold boots of a round of boot times (default: the profile's)"
    parser.add_argument("--boots", type=count, default=0, metavar="N", help=about)


def add_wait(parser: argparse.ArgumentParser) -> None:
    """How long to wait for a board that somebody else holds."""
    about = "how long to wait for a board that somebody holds: 90s, 30m (default: not)"
    parser.add_argument("--wait", type=duration, default=0.0, metavar="TIME", help=about)


def coordinator(options: argparse.Namespace) -> str:
    """HOST:PORT of the coordinator, "" without one."""
    given = options.coordinator or os.environ.get("LG_COORDINATOR", "")
    return coordinator_address(given) if given else ""


def add_several(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    """An option that may be given several times."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=text)


def add_rounds(parser: argparse.ArgumentParser, select: str, resume: str) -> None:
    """What is measured in turn, on a board that is held, and how to go on with it."""
    parser.add_argument("-k", dest="select", default="", help=f"what to measure {select}")
    parser.add_argument("--profile", choices=("full", "quick"), default="")
    add_boots(parser)
    add_wait(parser)
    parser.add_argument("--resume", type=Path, metavar="FOLDER", help=f"go on with {resume}")
    add_results(parser)


def duration(text: str) -> float:
    """Seconds of `90s`, `30m` or `2h`; for argparse."""
    try:
        return seconds(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def board_name(given: str) -> str:
    """The name that runs have for a board, given that name or its file; for argparse."""
    with contextlib.suppress(UsageError):
        return boards.load(boards.find(given)).name
    return given


def count(text: str) -> int:
    """A number from 1 on; for argparse."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of times: say 1 or more")
    return int(text)


def say(reply: Reply) -> None:
    """Tell a person the news of a request."""
    if isinstance(reply, Remark):
        print(f"evmperf: {reply.sentence}", file=sys.stderr, flush=True)
