"""What commands print, as text: whatever a board or a log said, the terminal only shows it."""

import contextlib
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Any, TextIO

from evmperf.model import outlets
from evmperf.model.concealing import concealed, without_known


class Plain:
    """A stream that takes text only, without known secrets; `own` is for the escape sequences of our own."""

    def __init__(self, own: TextIO) -> None:
        self.own = own

    def write(self, text: str) -> int:
        """Write what can be shown of a text; returns its length."""
        self.own.write(outlets.plain(without_known(text)))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.own, name)


class Messages(Plain):
    """A stream for people, also of errors that nobody expected: without passwords and tokens."""

    def write(self, text: str) -> int:
        """Write what may be shown of a text; returns its length."""
        from evmperf.model import limits  # noqa: PLC0415  # it loads msgspec, which help does without

        super().write(limits.short_words(concealed(text)))
        return len(text)


def width(piped: int = 160) -> int | None:
    """The characters of a line that goes to a file or another program; None on a terminal, which knows."""
    return None if sys.stdout.isatty() else piped


def note(line: str) -> None:
    """A line of what goes on, for a person, at once."""
    print(line, file=sys.stderr, flush=True)


def own(stream: TextIO) -> TextIO:
    """The stream itself, for a bar or a live table of ours that holds nobody's words."""
    return getattr(stream, "own", stream)


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """Within it, stdout and stderr take text only, stderr no secret; what an encoding lacks is `?`."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    streams: Any = Plain(sys.stdout), Messages(sys.stderr)
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        yield
