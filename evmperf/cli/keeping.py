"""The commands `evmperf who` and `evmperf ask`."""

import argparse
import getpass
import os
import sys
from typing import Any

from evmperf.cli import arguments
from evmperf.keeping import listing
from evmperf.keeping.claim import KeeperLink
from evmperf.keeping.hold import clock
from evmperf.model.errors import UsageError
from evmperf.report.columns import Column, table

_WHO = """\
Shows the boards that are held on this host and, with a coordinator, at all its places: holder, run,
since when, what is measured, expected end.
"""
_ASK = """\
Shows a message in the holder's session. A session that was started with --give-way (those of a night
may be) ends after the case in flight.
"""


def add_parsers(subparsers: Any) -> None:
    """Add the commands."""
    arguments.command(subparsers, "who", _who, _WHO, "--coordinator")
    ask = arguments.command(subparsers, "ask", _ask, _ASK, "--coordinator")
    ask.add_argument("place", help="as `evmperf who` lists it")
    ask.add_argument("message", nargs="*", help='default: "may I have it?"')


def _who(options: argparse.Namespace) -> int:
    records = listing.holders(arguments.coordinator(options))
    if not records:
        print("nobody holds a board here")
        return 0
    heads = ("place", "holder", "run", "since", "until", "measures")
    rows = [
        (r.place, r.by, r.run or "by hand", clock(r.since), clock(r.until) if r.until else "", r.doing)
        for r in records
    ]
    width = None if sys.stdout.isatty() else 160
    print(table([Column(head, wrap=head == "measures") for head in heads], rows, width), end="")
    return 0


def _ask(options: argparse.Namespace) -> int:
    who = os.environ.get("LG_USERNAME") or getpass.getuser()
    message = f"{who}: {' '.join(options.message) or 'may I have it?'}"
    coordinator = arguments.coordinator(options)
    if any(r.place == options.place and not r.coordinator for r in listing.holders("")):
        coordinator = ""
    if "\n" in message:
        raise UsageError("a message is one line")
    link = KeeperLink()
    try:
        answer = link.ask("ask", 60, place=options.place, coordinator=coordinator, message=message)
    finally:
        link.close()
    print(f"asked {answer['told']}")
    return 0
