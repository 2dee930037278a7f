"""The commands `evmperf who` and `evmperf ask`."""

from __future__ import annotations

import argparse
import getpass
import os
from typing import Any

from evmperf.keeping import listing
from evmperf.keeping.claim import KeeperLink
from evmperf.keeping.wanted import coordinator_address
from evmperf.model.errors import UsageError


def add_parsers(subparsers: Any) -> None:
    """Add the commands; each sets `func`, a callable (args) -> exit status."""
    who = subparsers.add_parser(
        "who",
        description="Shows the boards that are held on this host, and with a coordinator all its "
        "places: holder, run, since when, what is being measured, expected end.",
    )
    _add_coordinator(who)
    who.set_defaults(func=_who)

    ask = subparsers.add_parser(
        "ask",
        description="Shows a message in the holder's session. A session started with --give-way "
        "(those of a night may be) ends after the case in flight.",
    )
    ask.add_argument("place", help="as `evmperf who` lists it")
    ask.add_argument("message", nargs="*", help='default: "may I have it?"')
    _add_coordinator(ask)
    ask.set_defaults(func=_ask)


def _add_coordinator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--coordinator",
        default=os.environ.get("LG_COORDINATOR", ""),
        help="Labgrid's coordinator, HOST[:PORT] [LG_COORDINATOR]",
    )


def _coordinator(options: argparse.Namespace) -> str:
    return coordinator_address(options.coordinator) if options.coordinator else ""


def _who(options: argparse.Namespace) -> int:
    lines = listing.table(listing.holders(_coordinator(options)))
    print("\n".join(lines) if lines else "nobody holds a board here")
    return 0


def _ask(options: argparse.Namespace) -> int:
    who = os.environ.get("LG_USERNAME") or getpass.getuser()
    message = f"{who}: {' '.join(options.message) or 'may I have it?'}"
    coordinator = _coordinator(options)
    if any(r["place"] == options.place and not r["coordinator"] for r in listing.holders("")):
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
