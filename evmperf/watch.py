"""Watching the console for what must not come: panic, oops, and a boot loader where Linux was.

Works on the stream as it arrives, so that a dead board is named within a second instead of after
a test's time-out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OVERLAP = 2048
"""Bytes kept from chunk to chunk, so that a text cut in two is still seen: more than a line of the
kernel's, which is at most 1 KiB.
"""


@dataclass(frozen=True)
class Alarm:
    """What was seen: `name` for people and records, `text` the line that showed it."""

    name: str
    text: str


_ALWAYS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("kernel panic", re.compile(rb"Kernel panic - not syncing[^\r\n]*[\r\n]")),
    (
        "kernel oops",
        re.compile(rb"(?:Internal error: [^\r\n]*\[#\d+\]|kernel BUG at )[^\r\n]*[\r\n]"),
    ),
)
_IN_LINUX: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("silent reset", re.compile(rb"U-Boot (?:SPL )?\d{4}\.\d\d[^\r\n]*[\r\n]")),
)
_KERNEL_STARTS = re.compile(rb"Starting kernel \.\.\.|Linux version \d")


class Watch:
    """Follows one boot; `feed` returns an alarm once, at the first thing that must not come."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew: the power was just switched on."""
        self._tail = b""
        self._linux = False
        self._alarmed = False

    def feed(self, data: bytes) -> Alarm | None:
        """Look at bytes that just arrived."""
        if self._alarmed:
            return None
        window = self._tail + data
        begin = 0
        if not self._linux:
            start = _KERNEL_STARTS.search(window)
            if start:
                self._linux = True
                begin = start.end()
        patterns = (*_ALWAYS, *_IN_LINUX) if self._linux else _ALWAYS
        for name, pattern in patterns:
            match = pattern.search(window, begin)
            if match:
                self._alarmed = True
                return Alarm(name, match.group().decode("utf-8", "replace").strip())
        # What was seen before Linux started must not be seen again as part of Linux.
        self._tail = window[max(begin, len(window) - _OVERLAP) :]
        return None
