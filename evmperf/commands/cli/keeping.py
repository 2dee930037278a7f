"""`evmperf who`, `ask` and `health`: who has which board, and which ones fail."""

import argparse
import getpass
import os

from evmperf.commands.cli.arguments import COORDINATOR, RESULTS, argument, command, coordinator
from evmperf.commands.cli.terminal import width
from evmperf.commands.night.health import Health, Register
from evmperf.lab.keeping.claim import ask_once, holders
from evmperf.lab.keeping.wanted import Wanted, clock
from evmperf.model.errors import UsageError
from evmperf.model.units import counted
from evmperf.publish.report.columns import Column, table


@command("who", COORDINATOR)
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
    "ask",
    COORDINATOR,
    argument("place", help="as `evmperf who` lists it"),
    argument("message", nargs="*", help='default: "may I have it?"'),
)
def _ask(options: argparse.Namespace) -> None:
    """Shows a message in the holder's session. A session started with --give-way (a night's session
    may be) ends after the current case.
    """
    who = os.environ.get("LG_USERNAME") or getpass.getuser()
    message = f"{who}: {' '.join(options.message) or 'may I have it?'}"
    local = any(r.place == options.place and not r.coordinator for r in holders(""))
    address = "" if local else coordinator(options)
    if "\n" in message:
        raise UsageError("the message must be one line")
    answer = ask_once("ask", place=options.place, coordinator=address, message=message)
    print(f"asked {answer['told']}")


@command(
    "health",
    COORDINATOR,
    RESULTS,
    argument("do", nargs="?", default="list", choices=["list", "clear"]),
    argument("place", nargs="?", default="", help="the board to clear"),
)
def _health(options: argparse.Namespace) -> None:
    """Lists the boards with lab failures. A suspect board begins its next night with a health check; a bad
    one is left out until it is cleared.
    """
    register = Register(options.results)
    address = coordinator(options)
    known = register.all(address)
    if options.do == "list":
        for name, health in known.items():
            print(f"{name}  {health.state}  {counted(health.failures, 'failure')} in a row  {health.why}")
        if not known:
            print("all boards are well")
        return
    if not options.place:
        raise UsageError("health clear: which board? `evmperf health` lists them")
    if options.place not in known:
        raise UsageError(f"no failures of {options.place}: `evmperf health` lists boards with failures")
    local = register.of(Wanted(options.place)) != Health()
    register.keep(Wanted(options.place, "" if local else address), Health())
    print(f"{options.place} is cleared: nights use it again")
