"""`evmperf push`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from evmperf.cli import arguments, sources
from evmperf.influx import config as configs
from evmperf.influx.client import Store
from evmperf.influx.push import RunPush
from evmperf.influx.sender import refused_text, waiting
from evmperf.runs.history import run_folder


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "push",
        description="Send runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET "
        "or ~/.config/evmperf/influx.toml name, and keep them in the lab's store. Sending twice "
        "changes nothing. Without RUN, send what is not there yet; a named run is sent as a whole.",
    )
    arguments.add_run(parser, nargs="*")
    parser.set_defaults(func=_push)


def _push(options: argparse.Namespace) -> int:
    config = configs.required()
    folders = [run_folder(run, options.results) for run in options.run]
    with Store(config) as store:
        for folder in folders or waiting(options.results, config.key, begun=False):
            pushed = RunPush.of(store, folder, again=bool(folders)).send()
            said = f"{folder.name}: {pushed.points} points"
            if not pushed.complete:
                said += "; it is still being measured"
            else:
                sources.keep([folder])
            print(said)
            if problem := refused_text(folder, pushed.refused):
                print(f"evmperf: {problem}", file=sys.stderr)
    return 0
