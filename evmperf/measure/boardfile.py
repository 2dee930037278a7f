"""The board file that a person or a job names, completed by the lab's settings."""

import contextlib
import os
import re
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError


def named(given: str, options: Path | None = None) -> Board:
    """The board of a named file (see `boards.find`), checked against the catalogue; `options` is a file of
    evmperf's options beside it.

    $EVMPERF_TESTER, the SSH name of this board's tester, overrides the file, as a file describes
    all boards of its kind. Raises UsageError.
    """
    return catalogue.board(boards.find(given), os.environ.get("EVMPERF_TESTER", ""), options)


def check_variables(path: Path) -> None:
    """Raise UsageError for a missing `$LG_...` before Labgrid fills these from the environment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        for name in re.findall(r"\$\{?(LG_\w+)", line.partition("#")[0]):
            if name not in os.environ:
                what = "the name of the board's place on your Labgrid coordinator (`labgrid-client places`)"
                meaning = f": {what}" if name == "LG_PLACE" else ""
                raise UsageError(f"{path} needs ${name}{meaning}: set it, as in {name}=NAME pytest")


def is_evmperfs(given: str) -> bool:
    """Whether a named file was written for evmperf: it has options that only evmperf reads."""
    with contextlib.suppress(UsageError, KeyError, TypeError):  # of other forms are others' files
        _, main = boards.target_of(boards.find(given))
        return "evmperf" in main or "name" in main["options"]["board"]
    return False
