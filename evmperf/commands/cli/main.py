"""The `evmperf` command."""

import argparse
import contextlib
import errno
import importlib
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from evmperf import __version__
from evmperf.commands.cli import terminal
from evmperf.measure.signals import Signals
from evmperf.model.concealing import learn
from evmperf.model.errors import EvmperfError, UsageError, meant
from evmperf.model.exits import ExitStatus, of_kind

_COMMANDS: dict[str, dict[str, tuple[str, str]]] = json.loads(
    Path(__file__).with_name("commands.json").read_text()
)
"""Each command's module in this room and its line in the help, grouped by what a user wants. The help shows
lines of the first group and names of the others.
"""

_ROOM = "evmperf.commands.cli"

_EXTRAS = {
    **dict.fromkeys(("docutils", "sphinx", "weasyprint"), "guide"),
    "duckdb": "parquet",
    "pyvisa": "meter",
}
"""Modules that not every host needs, and the extra of pyproject.toml that brings them."""


_BESIDE = {**dict.fromkeys(("import-guide", "guide-review"), "guide-reader"), "virtual": "evmperf_virtual"}
"""Commands that other packages add, and their packages."""


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit status of a wrong call that all our commands have."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        _flush_output()
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        if choice := re.match(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)", message):
            hint = meant(choice[1], re.findall(r"[\w-]+", choice[2])) or f"; known are {choice[2]}"
            message = f"there is no command {choice[1]}{hint}"
        self.exit(ExitStatus.USAGE, f"{self.prog}: error: {message}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status (evmperf.model.exits)."""
    words = sys.argv[1:] if words is None else words
    learn(os.environ)
    with terminal.plain():
        return _run(words)


def _run(words: Sequence[str]) -> int:
    try:
        if "_ARGCOMPLETE" in os.environ:
            import argcomplete  # noqa: PLC0415  # for a shell that asks, by register-python-argcomplete evmperf

            argcomplete.autocomplete(_parser(*os.environ.get("COMP_LINE", "").split()[1:2]))
        words = words or ["--help"]
        if words[:2] == ["guide", "review"]:
            words = ["guide-review", *words[2:]]
        for word in words:
            if word.startswith("--") and word.endswith("=--"):  # of which argparse makes an empty list
                raise UsageError(f"{word}: -- is no value: give one, or leave the option out")
        options = _parser(next((w for w in words if not w.startswith("-")), "")).parse_args(words)
        with Signals().watching():
            status = options.func(options) or ExitStatus.OK
        _flush_output()
        return status
    except EvmperfError as error:
        print(f"evmperf: {error}", file=sys.stderr)
        return of_kind(error.kind)
    except BrokenPipeError:
        _discard_output()  # somebody's `| head` has read enough
        return 0
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # Python's own status would say FAILED
        return _unforeseen(error)


def _flush_output() -> None:
    """Print what is still to be printed: here a closed pipe and a full disk are answered, at the end of
    the interpreter they are not.
    """
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
        raise


def _discard_output() -> None:
    """What is still to be printed goes nowhere: else the interpreter would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unforeseen(error: Exception) -> ExitStatus:
    """Say what an error of Python is about: a missing extra, a file, or a mistake in evmperf."""
    missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if extra := _EXTRAS.get(missing.partition(".")[0]):
        needed = f"this needs {missing}, which is not installed"
        print(f"evmperf: {needed}: pip install 'evmperf[{extra}]'", file=sys.stderr)
        return ExitStatus.USAGE
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    if isinstance(error, OSError) and (error.filename or full):
        # Python does not say into which of its files it could not write.
        remedy = "; make room on that disk, or write to another" if full else ""
        if error.errno in (errno.EROFS, errno.EACCES):
            remedy = "; name another place"
        print(f"evmperf: {error.filename or 'output'}: {error.strerror}{remedy}", file=sys.stderr)
        with contextlib.suppress(OSError):
            _flush_output()
        return ExitStatus.LAB_BROKEN if full else ExitStatus.USAGE
    sys.excepthook(type(error), error, error.__traceback__)
    print(f"evmperf: this is a mistake in evmperf: {error!r}", file=sys.stderr)
    return ExitStatus.INTERNAL


def _parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of one command; without one, that of the help and of errors."""
    modules = {
        name: f"{_ROOM}.{module}" for group in _COMMANDS.values() for name, (module, _) in group.items()
    }
    (title, first), *others = _COMMANDS.items()
    lines = [f"{title}:", *(f"  {name:9} {line}" for name, (_, line) in first.items()), ""]
    groups = {title: list(group) for title, group in others}
    if command not in modules:
        from evmperf.model.plugins import not_installed, plugins  # noqa: PLC0415  # slow to import

        if command in _BESIDE and command not in plugins("commands"):
            raise not_installed(f"evmperf {command}", _BESIDE[command])
        if added := {name: point.value for name, point in plugins("commands").items()}:
            modules |= added
            groups["Of other packages"] = list(added)
    parser = _Parser(
        prog="evmperf",
        description="The hardware-in-the-loop performance lab for TI evaluation modules.\n\n"
        + "\n".join([*lines, *(f"{title}:\n  {', '.join(names)}" for title, names in groups.items())]),
        epilog="Exit status, also of pytest: 0 done, 1 something failed or is worse,\n"
        "2 interrupted, 3 the lab is broken, 4 a wrong call, 5 nothing to do,\n"
        "70 a mistake in evmperf.\n"
        "`evmperf COMMAND --help` describes a command, `evmperf help` lists the pages of docs/.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"evmperf {__version__}")
    commands: Any = parser.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    if command in modules:
        from evmperf.commands.cli import arguments  # noqa: PLC0415  # slow to import

        importlib.import_module(modules[command])
        arguments.add(commands, modules[command])
    else:
        for name in modules:
            commands.add_parser(name)
    return parser


if __name__ == "__main__":
    sys.exit(main())
