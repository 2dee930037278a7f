"""`evmperf report`."""

from __future__ import annotations

import argparse
from typing import Any

from evmperf.cli import arguments


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write a run's report again",
        description="Write report.html of a run from what is on the disk. A run that is being "
        "measured or was killed has a report too.",
    )
    arguments.add_run(parser)
    parser.set_defaults(func=_report)


def _report(options: argparse.Namespace) -> int:
    from evmperf.report import page  # noqa: PLC0415  # slow to import
    from evmperf.runs.history import run_folder  # noqa: PLC0415

    print(page.write(run_folder(options.run, options.results)))
    return 0
