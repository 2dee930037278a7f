"""`evmperf push`."""

import argparse
import sys
from typing import Any

from evmperf.app import publishing
from evmperf.cli import arguments
from evmperf.runs.history import run_folder


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "push",
        description="Send runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET "
        "or ~/.config/evmperf/influx.toml name. Sending twice changes nothing. Without RUN, send "
        "what is not there yet; a named run is sent as a whole.",
    )
    arguments.add_run(parser, nargs="*")
    parser.set_defaults(func=_push)


def _push(options: argparse.Namespace) -> int:
    runs = [run_folder(run, options.results) for run in options.run]
    for said, problem in publishing.sent(options.results, runs):
        print(said)
        if problem:
            print(f"evmperf: {problem}", file=sys.stderr)
    return 0
