"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

A_RUN = "a run's folder, its name below --results, or `last`"


def add_run(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Which run, and where it is."""
    parser.add_argument("run", nargs=nargs, help=A_RUN)
    add_results(parser)


def add_results(parser: argparse.ArgumentParser) -> None:
    """Where the runs are."""
    parser.add_argument("--results", type=Path, default=Path("results"), help="default: results")
