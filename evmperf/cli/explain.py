"""`evmperf explain`: what differs between two runs, or two sides of several."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

from evmperf.cli import arguments
from evmperf.model.errors import UsageError
from evmperf.regress import against
from evmperf.report import differences as report
from evmperf.runs import differences


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        description="Say what differs between two runs in everything known about them: what was "
        "asked for, image, kernel, command line, device tree by node, kernel configuration, "
        "modules, kernel messages, U-Boot, CPU frequency, mitigations, tools, media. Sorted by "
        "what is likely to matter. With several runs a side, only what "
        "holds for all runs of a side.",
        epilog="Exit status: 0, whether anything differs or not.",
    )
    parser.add_argument("a", metavar="A", nargs="?", help="a run's folder, or its name below --results")
    parser.add_argument("b", metavar="B", nargs="?", help="another run")
    parser.add_argument("--a", dest="more_a", metavar="RUN", nargs="+", default=[], help="runs of side A")
    parser.add_argument("--b", dest="more_b", metavar="RUN", nargs="+", default=[], help="runs of side B")
    parser.add_argument("--all", action="store_true", help="every line, however many")
    parser.add_argument("--json", action="store_true", help="a list of objects, for programs")
    arguments.add_results(parser)
    parser.set_defaults(func=_explain)


def _explain(options: argparse.Namespace) -> int:
    sides = [
        [against.run_folder(given, options.results) for given in (*([one] if one else []), *more)]
        for one, more in ((options.a, options.more_a), (options.b, options.more_b))
    ]
    if not all(sides):
        raise UsageError("explain takes two sides: evmperf explain A B, or --a RUN... --b RUN...")
    found = differences.between(*sides)
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in found], indent=1))
    else:
        print(report.text(found, everything=options.all), end="")
    return 0
