"""What a check found, and what the command makes of all of it."""

import enum
from collections.abc import Callable, Iterable, Iterator
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


def checked(step: str, check: Callable[[], Iterable[CheckFinding | str] | str]) -> Iterator[CheckFinding]:
    """The findings of one step; `check` returns the sentence of a good one, or yields findings of its own,
    and raises EvmperfError or Noted.
    """
    try:
        outcome = check()
        for item in [outcome] if isinstance(outcome, str) else outcome:
            yield item if isinstance(item, CheckFinding) else CheckFinding(step, CheckOutcome.OK, item)
    except Noted as note:
        yield CheckFinding(step, CheckOutcome.NOTE, str(note))
    except EvmperfError as error:
        yield CheckFinding(step, CheckOutcome.BAD, str(error), error.kind)


def exit_status(findings: Iterable[CheckFinding]) -> ExitStatus:
    """The status of the first that is bad: what comes later often follows from it."""
    first = next((finding for finding in findings if finding.outcome is CheckOutcome.BAD), None)
    return of_kind(first.kind or Kind.BOARD) if first else ExitStatus.OK
