"""How commands get their arguments, which a YAML file beside each module declares, and their news.

An argument is `NAMES=METAVAR` and its help, or the words of argparse's add_argument: `flag` and `several`
are the help of an option without a value, or with several; `variable` has an option's value if nobody
gives it. A positional one may end in `?`, `*` or `+`, as argparse's nargs; a text that is not given is "".
"""

import argparse
import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.boards.vocabulary import FEATURES
from evmperf.lab.keeping.wanted import coordinator_address
from evmperf.model.errors import UsageError
from evmperf.model.replies import Remark, Reply
from evmperf.model.units import seconds

_Request = TypeVar("_Request", bound=msgspec.Struct)
_Run = TypeVar("_Run", bound=Callable[[argparse.Namespace], int | None])
_Entry = str | dict[str, Any]
"""A name of shared arguments, an argument, or `either`: options that exclude each other."""


class Argument(NamedTuple):
    """An argument: its names, and the other words of argparse's add_argument."""

    names: list[str]
    words: dict[str, Any]


class _Declared(msgspec.Struct, forbid_unknown_fields=True):
    """A command, or the `group` of those whose names begin with its own.

    Texts with line breaks are shown as they are, other texts are filled. `help` is a command's line in the
    list of its group.
    """

    group: str = ""
    about: str = ""
    help: str | None = None
    epilog: str | None = None
    arguments: list[_Entry] = []


_RUNS: dict[str, Callable[[argparse.Namespace], int | None]] = {}


def command(name: str) -> Callable[[_Run], _Run]:
    """Declare what a command does, whose None is the exit status 0."""

    def declared(run: _Run) -> _Run:
        _RUNS[name] = run
        return run

    return declared


def add(commands: Any, module: str) -> None:
    """Add the commands of a module, which is loaded."""
    groups: dict[str, Any] = {}
    declared = yamlfile.own(f"commands/cli/{module}.yaml")
    shared = _shared() | declared.pop("shared", {})
    for name, said in msgspec.convert(declared, dict[str, _Declared]).items():
        first, _, last = name.rpartition(" ")
        if said.group:
            parser = commands.add_parser(name, description=said.group, formatter_class=_Format)
            groups[name] = parser.add_subparsers(metavar="COMMAND", required=True)
            continue
        words = {"help": said.help} if first else {}
        parser = groups.get(first, commands).add_parser(
            last, description=said.about or said.help, epilog=said.epilog, formatter_class=_Format, **words
        )
        parser.set_defaults(func=_RUNS[name])
        _fill(parser, said.arguments, shared)


def _fill(parser: Any, entries: list[_Entry], shared: dict[str, list[_Entry]]) -> None:
    for entry in entries:
        if isinstance(entry, str):
            _fill(parser, shared[entry], shared)
        elif options := entry.get("either"):
            required = entry.get("required", False)
            _fill(parser.add_mutually_exclusive_group(required=required), options, shared)
        else:
            argument = _argument(entry)
            parser.add_argument(*argument.names, **argument.words)


@functools.cache
def _shared() -> dict[str, list[_Entry]]:
    return yamlfile.own("commands/cli/shared.yaml")  # type: ignore[no-any-return]  # a file of ours


def of_file(name: str) -> list[Argument]:
    """The arguments of a file of nothing else, for a parser that is not argparse's own."""
    return [_argument(entry) for entry in yamlfile.own(f"commands/cli/{name}.yaml")]


def _argument(entry: dict[str, Any]) -> Argument:
    ((names, said),) = entry.items()
    words: dict[str, Any] = {"help": said} if isinstance(said, str | None) else dict(said)
    if "flag" in words:
        words |= {"action": "store_true", "help": words.pop("flag")}
    if "several" in words:
        words = {"action": "append", "default": [], "help": words.pop("several"), **words}
    names, _, metavar = names.partition("=")
    name, many = names.rstrip("?*+"), names[-1]
    if name != names:
        words["nargs"] = many
    if (names.startswith("-") or many == "?") and not words.keys() & {"type", "action", "required"}:
        words = {"default": "", **words}
    if variable := words.pop("variable", ""):
        words["default"] = os.environ.get(variable) or words["default"]
        words["help"] += f" [{variable}]"
    if metavar:
        words["metavar"] = metavar
    if "type" in words:
        words["type"] = _TYPES[words["type"]]
    if words.get("choices") == "drivers":
        words["choices"] = sorted(FEATURES)
    return Argument(name.split(), words)


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


def show(reply: Reply) -> None:
    """The same where the news are the output."""
    if isinstance(reply, Remark):
        print(reply.sentence, flush=True)


def share(text: str) -> float:
    """The share that `2%` or `0.02` is; for argparse."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write 2% or 0.02")
    return value


_TYPES: dict[str, Callable[[str], Any]] = {
    **{"int": int, "float": float, "path": Path, "duration": duration, "count": count, "share": share},
    **{"board": board_name, "words": lambda text: [word.strip() for word in text.split(",")]},
}
