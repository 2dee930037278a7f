"""How fast evmperf itself is, against references measured in the same run; prints one table.

Each measure has a process of its own.
"""

import argparse
import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple

from selftests.instruments import command
from selftests.instruments.speed import (
    dashboards,
    lab,
    looks,
    recorded,
    sessions,
    slower,
    stamping,
    store,
    year,
)
from selftests.instruments.speed.figures import ROOT, Row, conditions, load, table

_MEASURES: dict[str, Callable[[], list[Row]]] = {
    "stamps": stamping.delays,
    "wires": stamping.wires,
    "overhead": sessions.overhead,
    "slower": slower.reference,
    "looks": looks.share,
    "verdicts": recorded.judging,
    **{f"verdicts-{part}": functools.partial(recorded.judging, part) for part in recorded.PARTS},
    "year": year.check,
    "push": store.push,
    "dashboards": dashboards.panels,
    "site": year.site,
    "lab-stamps": lab.stamps,
    "lab-night": lab.night,
    "lab-kick": lab.kicks,
}


_ON_REQUEST = [name for name in _MEASURES if name.startswith("verdicts")]
"""How good verdicts are is no speed; these take minutes: `... selftests.speed verdicts`."""


def main(words=None):
    parser = command.parser("selftests.speed", __doc__)
    usual = [name for name in _MEASURES if name not in _ON_REQUEST]
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(_MEASURES)}; default: all but {', '.join(_ON_REQUEST)}",
    )
    parser.add_argument("--alone", choices=_MEASURES, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    names = command.named(parser, options.names, _MEASURES) if options.names else usual
    # An end from outside cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.alone:
        print(json.dumps([astuple(row) for row in _MEASURES[options.alone]()]))
        return 0
    before, began = load(), time.monotonic()
    rows: list[Row] = []
    status = 0
    try:
        for name in names:
            print(f"measuring {name}, load average {load()}", file=sys.stderr, flush=True)
            found = _alone(name)
            if not found:
                found, status = [Row(name, figure="not measured: see above", met="NO")], 1
            rows += found
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 2
    print(table(rows))
    print(conditions(before, time.monotonic() - began))
    return status


def _alone(name):
    """The rows of a measure, [] if it failed: what one leaves in memory is no other's business."""
    command = [sys.executable, "-m", "selftests.speed", "--alone", name]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            text, _ = process.communicate()
        except KeyboardInterrupt:
            process.terminate()
            process.communicate()
            raise
    return [Row(*cells) for cells in json.loads(text)] if process.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main())
