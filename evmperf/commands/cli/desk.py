"""`evmperf desk`: one person, one board, one cable."""

import argparse
import getpass
import sys
from pathlib import Path

import msgspec

from evmperf.commands.app import desk
from evmperf.commands.app.requests import FindBoard, FoundBoard
from evmperf.commands.cli.arguments import command, requested, show, tell
from evmperf.lab.desk.identity import PasswordWanted
from evmperf.lab.doctor import host
from evmperf.lab.doctor.finding import Noted
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.pages import look


@command("desk")
def _desk(options: argparse.Namespace) -> int:
    try:
        found = desk.named(options.lg_env) if options.lg_env else _find(options)
    except desk.NoBoard as error:
        tell(str(error))
        return ExitStatus.NOTHING
    print(look.render("commands/cli/desk.txt.j2", found=found))
    if any(name.startswith("boot_time") for name in found.can):
        try:
            host.real_time()
        except Noted as note:
            print(f"This machine: {note}")
    if not found.can:
        raise UsageError(f"nothing can be measured on {found.where} as it is: see above")
    question = "Measure now? [Y/n] "
    if not options.yes and not (sys.stdin.isatty() and input(question).strip().lower() in ("", "y", "yes")):
        print(f"Nothing was measured. Later: evmperf desk --lg-env {found.file} --yes")
        return 0
    return desk.measure(found.file, options.results, options.keyword)


def _find(options: argparse.Namespace) -> FoundBoard:
    request = requested(FindBoard, options, folder=Path(options.results) / "desk")
    try:
        return desk.find(request, show, _may_make)
    except PasswordWanted as error:
        if not sys.stdin.isatty():
            raise
        print(f"{error}.")
        password = getpass.getpass(f"Password of {options.user}: ")
        return desk.find(msgspec.structs.replace(request, password=password), show, _may_make)


def _may_make(plan: str) -> bool:
    """Whether the person at the terminal wants a partition: only a word does."""
    print(plan)
    return sys.stdin.isatty() and input("Make it? Type yes: ").strip().lower() == "yes"
