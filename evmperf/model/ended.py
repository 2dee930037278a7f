"""How a session ended: for its run, for the process that started it, and for a night."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.model.errors import Kind
from evmperf.model.exits import ExitStatus
from evmperf.model.outlets import plain
from evmperf.model.results import Result, Status
from evmperf.model.units import counted


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
    """Somebody took the board, or the coordinator forgot who holds it."""
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


def of(
    board: str,
    results: Sequence[Result],
    planned: int,
    cut: tuple[Ending, str, str] | None = None,
    failed_tests: int = 0,
    *,
    broken: bool = False,
) -> Ended:
    """The end of a session that planned so many cases; `cut` is what ended it before, and why, if
    anything did. `failed_tests` measured no case. The board is `broken` when trying it was given up.
    """
    failed = [result for result in results if result.status is not Status.MEASURED]
    measured = len(results) - len(failed)
    part = sum(result.status is Status.PARTIAL for result in failed)
    also = f", {part} in part" if part else ""
    whole = f"{measured} of {counted(planned, 'case')} measured on {board}{also}"
    if cut:
        ending, what, why = cut
        return Ended(ending, f"{what}: {why} ({whole})." if why else f"{what}: {whole}.")
    if measured == planned:
        done = f"All measured: {whole}" if planned else f"No case was to be measured on {board}"
        if failed_tests:
            return Ended(Ending.FAILED, f"{done}; {counted(failed_tests, 'other test')} failed.")
        return Ended(Ending.MEASURED, f"{done}.")
    first = f"; first: {failed[0].benchmark} {failed[0].case}: {cause(failed[0])}" if failed else ""
    # Without a sample, every failure may be the board's.
    kinds = {failure.kind for result in failed for failure in result.failures}
    dead = kinds == {Kind.BOARD} and not any(result.samples for result in results)
    return Ended(Ending.BOARD if dead or broken else Ending.FAILED, f"Only {whole}{first}.")


def cause(result: Result) -> str:
    """The reason that matters most for a result that is not whole."""
    lasting = [f for f in result.failures if not f.refused] or list(result.failures)
    if not lasting:
        return "some samples are missing"
    first = lasting[0]
    return plain(f"{first.step + ': ' if first.step else ''}{first.message} ({first.kind})")
