"""`evmperf lab`: who has which board."""

import argparse
import contextlib
import getpass
import os
import threading
import time

from evmperf.commands.cli.arguments import COORDINATOR, argument, command, coordinator, duration, group, tell
from evmperf.commands.cli.terminal import width
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import Claim, holders
from evmperf.lab.keeping.wanted import Wanted, clock
from evmperf.model.errors import UsageError
from evmperf.publish.report.columns import Column, table

_LOOK_S = 2.0
"""How often a board that was asked for is looked at."""


group("lab", "The boards of a lab: who has which (docs/lab-at-scale.md).")


@command("lab who", COORDINATOR)
def _who(options: argparse.Namespace) -> None:
    """Shows the boards that are held on this host and, with a coordinator, at all its places: holder, run,
    since when, what is measured, expected end.
    """
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
    "lab ask",
    COORDINATOR,
    argument("place", help="as `evmperf lab who` lists it"),
    argument("message", nargs="*", help='default: "may I have it?"'),
    argument("--for", dest="for_s", type=duration, default=3600.0, metavar="TIME", help="default: 1h"),
    argument("--wait", type=duration, default=3600.0, metavar="TIME", help="for the board (default: 1h)"),
)
def _ask(options: argparse.Namespace) -> None:
    """Asks for a board and holds it for you, before all others who wait. The holder's session shows the
    message; one started with --give-way (a night's may be) ends after its current case. Start your sessions
    meanwhile in another terminal; Ctrl-C gives the board back.
    """
    who = os.environ.get("LG_USERNAME") or getpass.getuser()
    time_asked = f"for {options.for_s / 60:g} min"
    message = f"{who}, {time_asked}: {' '.join(options.message) or 'may I have it?'}"
    if "\n" in message:
        raise UsageError("the message must be one line")
    local = any(r.place == options.place and not r.coordinator for r in holders(""))
    board = Wanted(options.place, "" if local else coordinator(options))
    claim = Claim.take(board, "", wait_s=options.wait, ask=message, tell=tell)
    try:
        end = time.time() + options.for_s
        claim.doing("", end)
        print(
            f"{claim.board.place} is yours until {clock(end)}: start your sessions; Ctrl-C gives it back",
            flush=True,
        )
        _hold(claim, end)
    finally:
        claim.release()
    print(f"{claim.board.place} is given back")


def _hold(claim: Claim, end: float) -> None:
    """Wait until then, or for Ctrl-C, and for the sessions that are still on the board; raises BoardLost."""
    lost = threading.Event()
    claim.on_lost = lambda sentence: lost.set()
    with contextlib.suppress(KeyboardInterrupt):
        while not lost.is_set() and time.time() < end:
            lost.wait(min(_LOOK_S, end - time.time()))
            claim.check()
    if not lost.is_set() and (run := _run_on(claim.board)):
        tell(f"run {run} goes on: it keeps the board until its end; Ctrl-C takes it away")
    while not lost.is_set() and _run_on(claim.board):
        lost.wait(_LOOK_S)
    claim.check()


def _run_on(board: Wanted) -> str:
    """The run that is on a board of this host, "" for none."""
    mine = [r for r in locks.held() if (r.place, r.coordinator) == (board.place, board.coordinator)]
    return next((record.run for record in mine if record.run), "")
