"""The board file that a person or a job names, completed by the lab's settings."""

from __future__ import annotations

import os

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards.board import Board


def named(given: str) -> Board:
    """The board of a named file (see `boards.find`), checked against the catalogue.

    $EVMPERF_TESTER, the SSH name of this board's tester, overrides the file, as a file describes
    all boards of its kind. Raises UsageError.
    """
    return catalogue.board(boards.find(given), os.environ.get("EVMPERF_TESTER", ""))
