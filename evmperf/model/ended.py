"""How a session ended: for its run, for the process that started it, and for a night."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from evmperf.model.exits import ExitStatus


class Ending(enum.StrEnum):
    """How a session ended, and so what a night does next."""

    MEASURED = "measured"
    """Everything that was asked for."""
    FAILED = "failed"
    """Some of it failed on the product's account: trying elsewhere would hide that."""
    LAB = "lab"
    """The lab: worth a try on another board."""
    BOARD = "board"
    """The board did nothing at all, by its own fault or by that of what it should boot: another
    board will tell.
    """
    LOST = "lost"
    """The board was taken away, or given to who asked for it."""
    CUT = "cut"
    """Somebody ended it: Ctrl-C, a signal, or a night that had to end."""
    LIMIT = "over its limit"
    """The plan gave it no more time."""
    WRONG = "wrong"
    """A wrong call: the plan is to blame."""


@dataclass(frozen=True)
class Ended:
    """How a session ended, in a word and in a sentence."""

    ending: Ending
    sentence: str

    @property
    def status(self) -> ExitStatus:
        """Its exit status."""
        return {
            Ending.MEASURED: ExitStatus.OK,
            Ending.FAILED: ExitStatus.FAILED,
            Ending.BOARD: ExitStatus.FAILED,
            Ending.CUT: ExitStatus.INTERRUPTED,
            Ending.WRONG: ExitStatus.USAGE,
        }.get(self.ending, ExitStatus.LAB_BROKEN)


def of_cases(board: str, measured: int, planned: int, first: str = "") -> Ended:
    """How a session ended that came to its end; `first` is the reason of the first failure."""
    whole = cases(board, measured, planned)
    if measured < planned:
        return Ended(Ending.FAILED, f"Only {whole}{first and f'; first: {first}'}.")
    return Ended(Ending.MEASURED, f"All measured: {whole}.")


def cut_short(ending: Ending, what: str, why: str, whole: str) -> Ended:
    """How a session ended before that: `what` happened, and `why`; `whole` is of `cases`."""
    return Ended(ending, f"{what}: {why} ({whole})." if why else f"{what}: {whole}.")


def cases(board: str, measured: int, planned: int) -> str:
    """How many cases were measured, of how many, in words."""
    return f"{measured} of {planned} cases measured on {board}"
