"""`evmperf lab`: who has which board."""

import argparse

from evmperf.commands.cli.arguments import COORDINATOR, command, coordinator, group
from evmperf.commands.cli.terminal import width
from evmperf.lab.keeping.claim import holders
from evmperf.lab.keeping.wanted import clock
from evmperf.publish.report.columns import Column, table

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
