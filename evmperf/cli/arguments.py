"""How commands declare their arguments, and the arguments and news that several share."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from evmperf.boards import board as boards
from evmperf.keeping.wanted import coordinator_address
from evmperf.model.errors import UsageError
from evmperf.model.replies import Remark, Reply
from evmperf.model.units import seconds

_Request = TypeVar("_Request", bound=msgspec.Struct)
_Run = TypeVar("_Run", bound=Callable[[argparse.Namespace], int | None])


class Argument(NamedTuple):
    """An argument: its names, and the other words of argparse's add_argument."""

    names: list[str]
    words: dict[str, Any]


class OneOf(NamedTuple):
    """Options that exclude each other."""

    options: tuple[Argument, ...]
    required: bool = False


def arg(names: str, text: str = "", /, **words: Any) -> Argument:
    """An argument `NAMES=METAVAR` with its help. A positional one may end in `?`, `*` or `+`, as
    argparse's nargs; a text that is not given is "".
    """
    names, _, metavar = names.partition("=")
    name, many = names.rstrip("?*+"), names[-1]
    if name != names:
        words = {"nargs": many, **words}
    if (names.startswith("-") or many == "?") and not words.keys() & {"type", "action", "required"}:
        words = {"default": "", **words}
    if metavar:
        words = {"metavar": metavar, **words}
    return Argument(name.split(), {"help": text or None, **words})


def flag(names: str, text: str) -> Argument:
    """An option without a value."""
    return Argument(names.split(), {"action": "store_true", "help": text})


def several(names: str, metavar: str, text: str, **words: Any) -> Argument:
    """An option that may be given several times."""
    words |= {"action": "append", "default": [], "metavar": metavar, "help": text}
    return Argument(names.split(), words)


class _Command(NamedTuple):
    run: Callable[[argparse.Namespace], int | None]
    name: str
    about: str
    arguments: tuple[Argument | OneOf, ...]
    words: dict[str, Any]


_COMMANDS: list[_Command] = []
_GROUPS: dict[str, str] = {}


def group(name: str, about: str) -> None:
    """Declare a command that consists of sub-commands, each `name SUB-COMMAND`."""
    _GROUPS[name] = about


def command(name: str, about: str, *arguments: Argument | OneOf, **words: Any) -> Callable[[_Run], _Run]:
    """Declare what a command does, whose None is the exit status 0.

    Texts with line breaks are shown as they are, other texts are filled. In a group of commands
    `help` is the line for the list, which is also the description where `about` is "".
    """

    def declared(run: _Run) -> _Run:
        _COMMANDS.append(_Command(run, name, about, arguments, words))
        return run

    return declared


def add(commands: Any, module: str) -> None:
    """Add the commands that a module declares."""
    groups: dict[str, Any] = {}
    for declared in (d for d in _COMMANDS if d.run.__module__ == module):
        first, _, name = declared.name.rpartition(" ")
        if first and first not in groups:
            parser = commands.add_parser(first, description=_GROUPS[first], formatter_class=_Format)
            groups[first] = parser.add_subparsers(metavar="COMMAND", required=True)
        words = {"description": declared.about or declared.words.get("help"), **declared.words}
        parser = groups.get(first, commands).add_parser(name, formatter_class=_Format, **words)
        parser.set_defaults(func=declared.run)
        for argument in declared.arguments:
            if isinstance(argument, OneOf):
                either = parser.add_mutually_exclusive_group(required=argument.required)
                for names, more in argument.options:
                    either.add_argument(*names, **more)
            else:
                parser.add_argument(*argument.names, **argument.words)


class _Format(argparse.RawDescriptionHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def requested(kind: type[_Request], options: argparse.Namespace, **more: Any) -> _Request:
    """The request whose fields are the options of the same names, and `more`."""
    given = {name: getattr(options, name, None) for name in kind.__struct_fields__} | more
    texts = {n: str(v) if isinstance(v, Path) else v for n, v in given.items() if v is not None}
    return msgspec.convert(texts, kind)


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
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on: write 1 or more")
    return int(text)


def coordinator(options: argparse.Namespace) -> str:
    """HOST:PORT of the coordinator, "" without one."""
    given = options.coordinator or os.environ.get("LG_COORDINATOR", "")
    return coordinator_address(given) if given else ""


def tell(sentence: str) -> None:
    """Tell a person what goes on."""
    print(f"evmperf: {sentence}", file=sys.stderr, flush=True)


def say(reply: Reply) -> None:
    """Tell a person the news of a request."""
    if isinstance(reply, Remark):
        tell(reply.sentence)


A_BOARD = "a board file, as for pytest --lg-env"
A_RUN = "a run's folder, its name below --results or the beginning of it, `last`, or `last~1`"

BOARD = arg("board=BOARD", A_BOARD)
BOARD_OPTION = arg("--board", A_BOARD)
COORDINATOR = arg("--coordinator", "Labgrid's coordinator, HOST[:PORT] [LG_COORDINATOR]")
IDENTITY = arg("--identity", "a LAVA server by its name in lavacli's configuration")
JSON = flag("--json", "print JSON for programs")
PROFILE = arg("--profile", "default: the board's", choices=("full", "quick"))
RESULTS = arg("--results", "folder of runs (default: results)", type=Path, default=Path("results"))
RUN, RUNS = arg("run", A_RUN), arg("run*", A_RUN)
SOURCE = arg(
    "--from=DIR|history|influx|published",
    "where earlier runs are (default: the folder of --results and the lab's store)",
    dest="source",
)
WAIT = arg(
    "--wait=TIME", "time to wait for a board in use: 90s, 30m (default: none)", type=duration, default=0.0
)


def rounds(select: str, resume: str) -> tuple[Argument, ...]:
    """What is measured in turn, on a board that is held, and how to go on with it."""
    boots = "cold boots of a round of boot times (default: the profile's)"
    return (
        arg("-k", f"what to measure {select}", dest="select"),
        arg("--profile", choices=("full", "quick")),
        arg("--boots=N", boots, type=count, default=0),
        WAIT,
        arg("--resume=FOLDER", f"go on with {resume}", type=Path),
        RESULTS,
    )
