"""The commands `evmperf who` and `evmperf ask`."""

import argparse
import getpass
import os

from evmperf.cli.arguments import COORDINATOR, arg, command, coordinator
from evmperf.cli.terminal import width
from evmperf.keeping.claim import ask_once, holders
from evmperf.keeping.wanted import clock
from evmperf.model.errors import UsageError
from evmperf.report.columns import Column, table

_WHO = """\
Shows the boards that are held on this host and, with a coordinator, at all its places: holder, run,
since when, what is measured, expected end.
"""
_ASK = """\
Shows a message in the holder's session. A session started with --give-way (a night's session
may be) ends after the current case.
"""


@command("who", _WHO, COORDINATOR)
def _who(options: argparse.Namespace) -> None:
    records = holders(coordinator(options))
    if not records:
        print("no board is held here")
        return
    heads = ("place", "holder", "run", "since", "until", "measures")
    rows = [
        (r.place, r.by, r.run or "by hand", clock(r.since), clock(r.until) if r.until else "", r.doing)
        for r in records
    ]
    print(table([Column(head, wrap=head == "measures") for head in heads], rows, width()), end="")


@command(
    "ask",
    _ASK,
    COORDINATOR,
    arg("place", "as `evmperf who` lists it"),
    arg("message*", 'default: "may I have it?"'),
)
def _ask(options: argparse.Namespace) -> None:
    who = os.environ.get("LG_USERNAME") or getpass.getuser()
    message = f"{who}: {' '.join(options.message) or 'may I have it?'}"
    local = any(r.place == options.place and not r.coordinator for r in holders(""))
    address = "" if local else coordinator(options)
    if "\n" in message:
        raise UsageError("the message must be one line")
    answer = ask_once("ask", place=options.place, coordinator=address, message=message)
    print(f"asked {answer['told']}")
