"""How commands declare their arguments, in argparse's words; arguments that several have; their news."""

import argparse
import contextlib
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from evmperf.boards import board as boards
from evmperf.model.concealing import concealed
from evmperf.model.errors import UsageError
from evmperf.model.units import seconds

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_Run = TypeVar("_Run", bound=Callable[[argparse.Namespace], int | None])


Added = Callable[[Any], None]
"""Gives an argument to a parser, or to a group of one."""


@dataclass(frozen=True)
class Argument:
    """An argument: its names, and the other words of argparse's add_argument."""

    names: tuple[str, ...]
    words: dict[str, Any]

    def __call__(self, parser: Any) -> None:
        """Give it to a parser, or to a group of one."""
        parser.add_argument(*self.names, **self.words)


def argument(*names: str, **words: Any) -> Argument:
    """An argument of a command, in the words of argparse's add_argument."""
    return Argument(names, words)


def either(*arguments: Added, required: bool = False) -> Added:
    """Options that exclude each other."""

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for one in arguments:
            one(group)

    return add


class _Command(NamedTuple):
    run: Callable[[argparse.Namespace], int | None]
    arguments: tuple[Added, ...]
    line: str | None
    epilog: str


_COMMANDS: dict[str, _Command] = {}
_GROUPS: dict[str, str] = {}


def command(
    name: str, *arguments: Added, listed: str | None = None, epilog: str = ""
) -> Callable[[_Run], _Run]:
    """Declare a command, described by its function's docstring, which returns the exit status (None: 0).

    `listed` is its line in the list of its group (default: the description).
    """

    def declared(run: _Run) -> _Run:
        _COMMANDS[name] = _Command(run, arguments, listed, epilog)
        return run

    return declared


def group(name: str, description: str) -> None:
    """Declare the group of the commands whose names begin with its own."""
    _GROUPS[name] = description


def add(commands: Any, module: str) -> None:
    """Add the commands of a module, which is loaded."""
    groups: dict[str, Any] = {}
    for name, one in _COMMANDS.items():
        if one.run.__module__ != module:
            continue
        first, _, last = name.rpartition(" ")
        if first and first not in groups:
            parser = _parser(commands, first, _GROUPS[first])
            groups[first] = parser.add_subparsers(metavar="COMMAND", required=True)
        about = inspect.getdoc(one.run) or ""
        words = {"help": one.line or about} if first else {}
        parser = _parser(groups.get(first, commands), last, about, one.epilog, **words)
        parser.set_defaults(func=one.run)
        for each in one.arguments:
            each(parser)


def _parser(commands: Any, name: str, about: str, epilog: str = "", **words: str) -> Any:
    return commands.add_parser(
        name,
        description=inspect.cleandoc(about),
        epilog=inspect.cleandoc(epilog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **words,
    )


def filled(kind: type[_Struct], options: argparse.Namespace, **more: object) -> _Struct:
    """The structure whose fields are the options of the same names, and `more`."""
    given = {field.name: getattr(options, field.name, None) for field in msgspec.structs.fields(kind)} | more
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


def tell(sentence: str) -> None:
    """Tell a person what goes on."""
    print(f"evmperf: {sentence}", file=sys.stderr, flush=True)


def show(sentence: str) -> None:
    """The same where the news are the output."""
    print(concealed(sentence), flush=True)


def share(text: str) -> float:
    """The share that `2%` or `0.02` is; for argparse."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write 2% or 0.02")
    return value


BOARD = argument("board", metavar="BOARD", help="a board file, as for pytest --lg-env")
BOARD_OPTION = argument("--board", default="", help="a board file, as for pytest --lg-env")
COORDINATOR = argument(
    "--coordinator", default="", help="Labgrid's coordinator, HOST[:PORT] [LG_COORDINATOR]"
)
JSON = argument("--json", action="store_true", help="print JSON for programs")
PROFILE = argument("--profile", default="", choices=["full", "quick"], help="default: the board's")
RESULTS = argument("--results", type=Path, default="results", help="folder of runs (default: results)")
A_RUN = "a run's folder, its name below --results or the beginning of it, `last` or `last~1`"
RUN = argument("run", nargs="?", default="last", help=f"{A_RUN} (default: last)")
SOURCE = argument(
    "--from",
    default="",
    dest="source",
    metavar="DIR|history|influx|published",
    help="where earlier runs are (default: the folder of --results, and that of EVMPERF_HISTORY)",
)
WAIT = argument(
    "--wait",
    type=duration,
    default=0.0,
    metavar="TIME",
    help="time to wait for a board in use: 90s, 30m (default: none)",
)
