"""The board file that a person or a job names, completed by what the lab says of its boards."""

from __future__ import annotations

import os

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards.board import Board


def named(given: str) -> Board:
    """The board of a file as people name it (see `boards.find`), checked against the catalogue.

    $EVMPERF_TESTER, the SSH name of the machine beside this one board, goes before what the file
    says, because a file describes all boards of its kind. Raises UsageError.
    """
    return catalogue.board(boards.find(given), os.environ.get("EVMPERF_TESTER", ""))
