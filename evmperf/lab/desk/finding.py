"""What a check found, and what the command makes of all of it."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evmperf.model.errors import EvmperfError, Kind
from evmperf.model.exits import ExitStatus, of_kind


class CheckOutcome(enum.StrEnum):
    """How a check went."""

    OK = "ok"
    NOTE = "note"
    """Nothing is broken, but something is missing, or is good to know."""
    BAD = "bad"
    UNCHECKED = "unchecked"
    """Not done, as it depends on one that failed."""


@dataclass(frozen=True)
class CheckFinding:
    """One line of `evmperf doctor`; `kind` is who has to act on a bad one."""

    step: str
    outcome: CheckOutcome
    text: str
    kind: Kind | None = None


class Noted(Exception):
    """Ends a check with a note: nothing is broken, but what depends on it cannot be checked."""


def checked(step: str, check: Callable[[], str]) -> CheckFinding:
    """The finding of a step; `check` returns the sentence of a good one, or raises EvmperfError or Noted."""
    try:
        return CheckFinding(step, CheckOutcome.OK, check())
    except Noted as note:
        return CheckFinding(step, CheckOutcome.NOTE, str(note))
    except EvmperfError as error:
        return CheckFinding(step, CheckOutcome.BAD, str(error), error.kind)


def exit_status(findings: Iterable[CheckFinding]) -> ExitStatus:
    """The status of the first that is bad: what comes later often follows from it."""
    first = next((finding for finding in findings if finding.outcome is CheckOutcome.BAD), None)
    return of_kind(first.kind or Kind.BOARD) if first else ExitStatus.OK
