"""How a session ended: for its run, for the process that started it, and for a night."""

import enum
from dataclasses import dataclass

from evmperf.model.exits import ExitStatus


class Ending(enum.StrEnum):
    """How a session ended, and so what a night does next."""

    MEASURED = "measured"
    """Everything that was asked for."""
    FAILED = "failed"
    """Some cases failed because of the product: a try on another board would hide that."""
    LAB = "lab"
    """The lab: worth a try on another board."""
    BOARD = "board"
    """The board did nothing; whether it or its image is to blame, another board will show."""
    LOST = "lost"
    """Somebody took the board, or it was given to somebody who asked."""
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
    """The end of a complete session; `first` is the reason of the first failure."""
    whole = cases(board, measured, planned)
    if measured < planned:
        return Ended(Ending.FAILED, f"Only {whole}{first and f'; first: {first}'}.")
    return Ended(Ending.MEASURED, f"All measured: {whole}.")


def cut_short(ending: Ending, what: str, why: str, whole: str) -> Ended:
    """The end of an incomplete session: `what` happened and `why`; `whole` is from `cases`."""
    return Ended(ending, f"{what}: {why} ({whole})." if why else f"{what}: {whole}.")


def cases(board: str, measured: int, planned: int) -> str:
    """How many cases were measured, of how many, in words."""
    return f"{measured} of {planned} cases measured on {board}"
