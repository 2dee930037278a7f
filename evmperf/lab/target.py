"""A board that is held, as Labgrid gives it without pytest."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from labgrid import Environment

from evmperf.boards.board import Board
from evmperf.lab import guest
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import variables
from evmperf.model.errors import EvmperfError, LabError, one_line
from evmperf.model.plugins import not_installed, plugins


def lab_of(board: Board, tell: Callable[[str], None]) -> Any:
    """Start the lab of a virtual board, which a plugin plays; it has `stop()`. None for real hardware.

    Raises UsageError when the plugin is not installed or the board file is wrong, LabError when the lab does
    not start.
    """
    if not board.options.board.virtual:
        return None
    labs = plugins("labs")
    if "virtual" not in labs:
        raise not_installed(f"{board.file_name} is a virtual EVM", "evmperf_virtual")
    return labs["virtual"].load()(board, tell)


@contextlib.contextmanager
def opened(
    board: Board, claim: Claim, tell: Callable[[str], None], *, keep_lab: bool = False
) -> Iterator[object]:
    """Labgrid's target of a board that `claim` holds; the lab of a virtual one runs meanwhile, and
    with `keep_lab` goes on.

    Raises LabError when Labgrid does not give the board.
    """
    place = claim.board.place if claim.board.coordinator else ""
    with contextlib.ExitStack() as stack:
        lab = lab_of(board, tell)
        if lab and not keep_lab:
            stack.callback(lab.stop)
        if place:
            # Labgrid's own session in this process goes by the holder's name.
            stack.enter_context(variables(claim.environment))
        try:
            environment = Environment(str(board.file))
            stack.callback(environment.cleanup)
            if place:
                environment.config.set_option("coordinator_address", claim.board.coordinator)
            for sentence in guest.adapt(environment.config, board):
                tell(sentence)
            target: object = environment.get_target(board.target)
        except EvmperfError:
            raise
        except Exception as error:  # noqa: BLE001  # Labgrid's errors have no common base
            remedy = "check resources and drivers in the board file"
            if place:
                remedy = (
                    f"is its exporter running, and does `labgrid-client -p {place} show` list "
                    f"console and power switch?"
                )
            raise LabError(f"Labgrid cannot provide the board ({one_line(error)}): {remedy}") from None
        yield target
