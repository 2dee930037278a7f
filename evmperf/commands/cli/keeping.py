"""`evmperf lab`: who has which board."""

import argparse
import os

from evmperf.commands.cli.arguments import COORDINATOR, command, group
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.places import connect
from evmperf.lab.keeping.wanted import Wanted

group("lab", "The boards of a lab: who has which (docs/lab-at-scale.md).")


@command("lab who", COORDINATOR)
def _who(options: argparse.Namespace) -> None:
    """Shows the boards that are held on this host and, with a coordinator, at all its places: holder
    (HOST/USER+RUN), since when, and the expected end of this host's sessions.
    """
    coordinator = options.coordinator or os.environ.get("LG_COORDINATOR")
    there = connect(Wanted("", coordinator), {}).held() if coordinator else []
    found = {text.partition(" since ")[0]: text for text in (*there, *locks.held())}  # this host's say more
    print("\n".join(sorted(found.values())) or "no board is held here")
