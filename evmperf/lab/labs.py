"""Labs that a plugin plays, as that of a virtual EVM."""

from collections.abc import Callable
from typing import Any

from evmperf.boards.board import Board
from evmperf.model.plugins import not_installed, plugins


def started(board: Board, tell: Callable[[str], None]) -> Any:
    """The lab of a virtual board, with `stop()`; None for real hardware.

    Raises UsageError when the plugin for it is not installed or the board file is wrong, LabError when the
    lab does not start.
    """
    if not board.options.board.virtual:
        return None
    labs = plugins("labs")
    if "virtual" not in labs:
        raise not_installed(f"{board.file_name} is a virtual EVM", "evmperf_virtual")
    return labs["virtual"].load()(board, tell)
