"""Errors, sorted by who has to act. Each is one sentence with event, object and remedy; the kind decides how
a run goes on: a tool's error costs one case, a board's a power cycle, a lab's ends the run.
"""

import difflib
import enum
from collections.abc import Iterable

from evmperf.model.concealing import concealed
from evmperf.model.outlets import plain


class Kind(enum.StrEnum):
    """Who has to act on a failure."""

    BOARD = "board"
    """The board: panic, silent reset, no boot, no login."""
    LAB = "lab"
    """What is around the board: power switch, serial line, network, tester, the lab's disk."""
    TOOL = "tool"
    """A program on the board: missing, crashed, or an output that cannot be vouched for."""
    USAGE = "usage"
    """The person: a wrong option, a file that is not there, a board file with a mistake."""


def meant(word: str, names: Iterable[str]) -> str:
    """What follows an unknown word: `; did you mean NAME?`, "" where none of the names is near."""
    near = difflib.get_close_matches(word, [*names], n=1)
    return f"; did you mean {near[0]}?" if near else ""


def one_line(error: object, longest: int | None = None) -> str:
    """What an error of another program or library says, in one line; its class where it says nothing."""
    return " ".join(str(error).split())[:longest] or type(error).__name__


class EvmperfError(Exception):
    """Base of evmperf's deliberate errors: a sentence for people, without control characters and secrets."""

    kind: Kind = Kind.USAGE

    def __str__(self) -> str:
        from evmperf.model import limits  # noqa: PLC0415  # it loads msgspec, which help does without

        return plain(limits.short_words(concealed(super().__str__())))


class UsageError(EvmperfError):
    """A wrong argument, option, or file of the user's."""

    kind = Kind.USAGE


class LabError(EvmperfError):
    """The lab around the board does not work."""

    kind = Kind.LAB


class BoardLost(LabError):
    """Somebody took the board: nothing may be sent to it, and its power may not be switched."""

    permanent = True


class Stopped(EvmperfError):
    """The person who switches the board's power ended the session."""

    permanent = True


class BoardError(EvmperfError):
    """The board does not do what a working board does."""

    kind = Kind.BOARD


class ToolError(EvmperfError):
    """A program on the board is missing or failed."""

    kind = Kind.TOOL


class RefusedOutput(ToolError):
    """A program's output holds no reliable number; `raw` keeps the refused text for a person."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class Interrupted(RefusedOutput):
    """The lab cut a step short (a lost console that came back): done once more, and recorded."""

    kind = Kind.LAB


def was_ctrl_c(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to an exception: Labgrid may replace it by an assertion of its own."""
    seen: set[int] = set()  # an error raised anew may be its own cause's context
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
