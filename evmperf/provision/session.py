"""A board of Labgrid's, opened for an installation without pytest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from labgrid import Environment

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.model.errors import EvmperfError, LabError
from evmperf.provision import cache
from evmperf.provision.installation import Installation
from evmperf.virtual import client


@contextlib.contextmanager
def opened(
    board: Board,
    *,
    tell: Callable[[str], None],
    progress: Callable[[str, int, int], None] = cache.quiet,
) -> Iterator[Installation]:
    """An Installation on the board, which for a virtual one is started where it does not run.

    Raises LabError when Labgrid does not give the board.
    """
    variant = board.options.board.virtual
    if variant and client.for_board(board.file, variant, tell):
        # It goes on running, as a lab does.
        tell(f"started the lab of the virtual EVM; `evmperf virtual stop {variant}` ends it")
    environment = None
    try:
        try:
            environment = Environment(str(board.file))
            target: Any = environment.get_target("main")
        except EvmperfError:
            raise
        except Exception as error:  # noqa: BLE001  # Labgrid's errors have no common base
            reason = " ".join(str(error).split()) or type(error).__name__
            raise LabError(f"Labgrid does not give us the board: {reason}") from None
        bench = LabgridBench(target, board)
        yield Installation(target, board, bench, tell=tell, progress=progress)
    finally:
        if environment:
            environment.cleanup()
