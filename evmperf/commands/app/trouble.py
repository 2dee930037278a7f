"""What ended a session, or kept it from measuring, and the exit status for it."""

from dataclasses import dataclass

from evmperf.model.ended import Ending
from evmperf.model.errors import BoardLost, EvmperfError, Kind, LabError
from evmperf.model.exits import ExitStatus


@dataclass
class SessionTrouble:
    """The trouble of a session as a whole: sentences, "" for none. What boards and tools do wrong in a case
    is with the results.
    """

    lab: str = ""
    """Why the lab is broken; the first reason counts."""
    not_begun: str = ""
    """Why nothing was measured on a lab that works: an image that does not boot or does not fit."""
    wrong_call: bool = False
    """Whether that is a wrong option, file or board file."""
    interrupted: bool = False

    def of_lab(self, reason: object) -> None:
        """The lab is broken."""
        self.lab = self.lab or str(reason)

    def keep(self, error: EvmperfError) -> str:
        """Keep the error that ends the session; returns why it ends, in words."""
        if isinstance(error, BoardLost):
            return f"the board was lost: {error}"  # the claim has it
        if isinstance(error, LabError):
            self.lab = str(error)
            return f"the lab is broken: {error}"
        # Measuring records what boards and tools do wrong: this is of the image for the board.
        self.not_begun, self.wrong_call = str(error), error.kind is Kind.USAGE
        return f"there is nothing to measure: {error}"

    def ending(self, lost: str, signal: str) -> tuple[Ending, str, str] | None:
        """What cut the session, in words, and the reason; None where nothing did. `lost` says why the board
        is ours no more, `signal` which one came.
        """
        reasons = (
            (Ending.LOST, "The board was lost", lost),
            (Ending.LAB, "The lab is broken", self.lab),
            (Ending.WRONG if self.wrong_call else Ending.BOARD, "Nothing was measured", self.not_begun),
        )
        if cut := next((reason for reason in reasons if reason[-1]), None):
            return cut
        by = f" by {signal}" if signal not in ("", "SIGINT") else ""
        return (Ending.CUT, f"Interrupted{by}", "") if self.interrupted else None

    def status(self, lost: str) -> ExitStatus | None:
        """The exit status that the end has, None for that of the cases."""
        if self.lab or lost:
            return ExitStatus.LAB_BROKEN
        if self.not_begun:  # pytest's own status for that is the one of Ctrl-C
            return ExitStatus.USAGE if self.wrong_call else ExitStatus.FAILED
        return None
