"""Exit statuses: pytest's numbers, with one meaning in every command (docs/error-kinds.md)."""

import enum

from evmperf.model.errors import Kind


class ExitStatus(enum.IntEnum):
    """How a command ended."""

    OK = 0
    """Done; everything was measured, nothing is worse."""
    FAILED = 1
    """Something failed on the board, or a figure is worse."""
    INTERRUPTED = 2
    """Somebody pressed Ctrl-C; what was measured before is kept."""
    LAB_BROKEN = 3
    """The lab failed (power switch, console, server, disk), not the board."""
    USAGE = 4
    """A wrong call: option, name, file. Nothing was started."""
    NOTHING = 5
    """There was nothing to do: no case selected, nothing comparable."""
    UNDECIDED = 6
    """Compared, but noise hides the answer: neither worse nor shown to be the same."""
    INTERNAL = 70
    """A mistake in evmperf itself (EX_SOFTWARE of sysexits.h): nothing can be said of the board."""


SIGNS = {"good": "✓", "unsure": "?", "bad": "✗"}
"""What stands before a sentence, by the state it tells of; pages have the states as classes."""


def of_kind(kind: Kind) -> ExitStatus:
    """The status of a command that ends with an error of that kind."""
    return {Kind.USAGE: ExitStatus.USAGE, Kind.LAB: ExitStatus.LAB_BROKEN}.get(kind, ExitStatus.FAILED)
