"""`evmperf report`."""

from __future__ import annotations

import argparse
from typing import Any

from evmperf.cli import arguments
from evmperf.report import page
from evmperf.runs.history import run_folder


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        description="Write report.html of a run from what is on the disk. A run that is being "
        "measured or was killed has a report too.",
    )
    arguments.add_run(parser)
    parser.set_defaults(func=_report)


def _report(options: argparse.Namespace) -> int:
    print(page.write(run_folder(options.run, options.results)))
    return 0
