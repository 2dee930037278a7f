"""`evmperf report`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_parser(commands: Any, run_folder: Callable[[str, Path], Path]) -> None:
    """Add the command; `run_folder` finds a run by what a person calls it."""
    parser = commands.add_parser(
        "report",
        help="write a run's report again",
        description="Write report.html of a run from what is on the disk. A run that is being "
        "measured or was killed has a report too.",
    )
    parser.add_argument("run", help="a run's folder, its name below --results, or `last`")
    parser.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    parser.set_defaults(func=lambda options: _report(options, run_folder))


def _report(options: argparse.Namespace, run_folder: Callable[[str, Path], Path]) -> int:
    from evmperf.report import page  # noqa: PLC0415  # slow to import

    print(page.write(run_folder(options.run, options.results)))
    return 0
