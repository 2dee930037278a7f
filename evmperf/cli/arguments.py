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


def add_boots(parser: argparse.ArgumentParser) -> None:
    """How many boots a round has."""
    parser.add_argument(
        "--boots",
        type=count,
        default=0,
        metavar="N",
        help="cold boots of a round of boot times (default: as many as the profile says)",
    )


def count(text: str) -> int:
    """A number from 1 on; for argparse."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of times: say 1 or more")
    return int(text)
