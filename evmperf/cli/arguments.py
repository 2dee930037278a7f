"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError

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


def add_wait(parser: argparse.ArgumentParser) -> None:
    """How long to wait for a board that somebody else holds."""
    parser.add_argument(
        "--wait",
        type=duration,
        default=0.0,
        metavar="TIME",
        help="wait so long for a board that somebody else holds: 90s, 30m, 2h (default: not)",
    )


def duration(text: str) -> float:
    """Seconds of `90s`, `30m` or `2h`; for argparse."""
    try:
        return seconds(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """A number from 1 on; for argparse."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of times: say 1 or more")
    return int(text)
