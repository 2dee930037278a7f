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


_EVENTS = re.compile(
    rb"(?P<panic>Kernel panic - not syncing[^\r\n]*[\r\n])"
    rb"|(?P<oops>(?:Internal error: [^\r\n]*\[#\d+\]|kernel BUG at )[^\r\n]*[\r\n])"
    rb"|(?P<spl>U-Boot SPL \d{4}\.\d\d[^\r\n]*[\r\n])"
    rb"|(?P<uboot>U-Boot \d{4}\.\d\d[^\r\n]*[\r\n])"
    rb"|(?P<linux>Starting kernel \.\.\.|Linux version \d)"
    rb"|(?P<asleep>PM: suspend entry)"
    rb"|(?P<awake>PM: suspend exit)"
)
_NAMES = {"panic": "kernel panic", "oops": "kernel oops"}
_RESET = "silent reset"


class Watch:
    """Follows one boot; `feed` returns an alarm once, at the first thing that must not come.

    A boot loader may say what it likes until `settle` or until Linux starts. While Linux says that
    it is suspended, SPL may run: some boards wake up through it.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew: the power was just switched on."""
        self._tail = b""
        self._settled = False
        self._asleep = False
        self._alarmed = False

    def settle(self) -> None:
        """From now on a boot loader's banner is a reset: its prompt has been reached."""
        if not self._settled:
            self._tail = b""
            self._settled = True

    def feed(self, data: bytes) -> Alarm | None:
        """Look at bytes that just arrived."""
        if self._alarmed:
            return None
        window = self._tail + data
        begin = 0
        for match in _EVENTS.finditer(window):
            # What was seen must not be seen again in another light.
            begin = match.end()
            if name := self._alarm(str(match.lastgroup)):
                self._alarmed = True
                return Alarm(name, match.group().decode("utf-8", "replace").strip())
        self._tail = window[max(begin, len(window) - _OVERLAP) :]
        return None

    def _alarm(self, event: str) -> str:
        """Take note of an event; returns the name of its alarm, "" for what may come."""
        if event == "linux":
            self._settled = True
        elif event in ("asleep", "awake"):
            self._asleep = event == "asleep"
        elif event == "uboot" or (event == "spl" and not self._asleep):
            return _RESET if self._settled else ""
        return _NAMES.get(event, "")
