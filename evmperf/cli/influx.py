"""`evmperf push`."""

import argparse
import sys

from evmperf.app import publishing
from evmperf.cli.arguments import RESULTS, RUNS, command
from evmperf.runs.history import run_folder

_ABOUT = """\
Sends runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET or
~/.config/evmperf/influx.toml name. Sending twice changes nothing. Without RUN, sends what is not
there yet; a named run is sent as a whole.
"""


@command("push", _ABOUT, RUNS, RESULTS)
def _push(options: argparse.Namespace) -> None:
    runs = [run_folder(run, options.results) for run in options.run]
    for said, problem in publishing.sent(options.results, runs):
        print(said)
        if problem:
            print(f"evmperf: {problem}", file=sys.stderr)
