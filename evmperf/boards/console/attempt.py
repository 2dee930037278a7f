"""One try to bring a board to a state: waiting for its prompt, and what is left when none comes.

`console` is any of Labgrid's; evmperf's own can do more, which is used where it is there.
"""

import re
import time
from dataclasses import dataclass
from typing import Any

from pexpect import TIMEOUT

from evmperf.boards.console.signs import diagnose, last_line
from evmperf.model.errors import BoardError, Kind

_QUIET_S = 0.3
"""How long a prompt must be the last thing that its line says."""
_POST_MORTEM_LINES = 200
_NOT_READ = re.compile(r"read error|timeout|timed out", re.IGNORECASE)
"""What U-Boot says of a medium that did not answer (fs/, drivers/mmc)."""


class NotReached(BoardError):
    """Time is up: `sentence` says what did not come, and what the console said tells why."""

    def __init__(self, sentence: str, output: str) -> None:
        cause, last = diagnose(output), last_line(output)
        if last and (cause is None or cause.text != last):
            sentence += f"; the last line is {last!r}"
        super().__init__(f"{sentence}; {cause.as_cause() if cause else 'it gave no reason'}")
        self.kind = cause.kind if cause else Kind.BOARD
        self.permanent = bool(cause and cause.permanent)


class CameBack(NotReached):
    """The boot command returned to U-Boot's prompt: permanent unless the medium did not answer."""

    def __init__(self, command: str, output: str) -> None:
        before = output.rstrip().removesuffix("=>")
        super().__init__(f"`{command}` returned to U-Boot's prompt", before)
        self.permanent = not _NOT_READ.search(str(self))


@dataclass(eq=False)
class Attempt:
    """One try: `began` on CLOCK_MONOTONIC, its `seconds`, the awaited `phase`, its `error` or None, power
    state and last lines as `post_mortem`, whether the board `boots` or only logs in.
    """

    goal: str
    began: float
    seconds: float = 0.0
    phase: str = ""
    error: BaseException | None = None
    post_mortem: str = ""
    boots: bool = False

    def sentence(self) -> str:
        """How it failed."""
        reason = str(self.error).strip().split("\n")[0] or type(self.error).__name__
        return (
            f"the board did not reach {self.goal}: {reason}{f' (at the {self.phase})' if self.phase else ''}"
        )


def tell(console: object, what: str, *arguments: object) -> None:
    """Let evmperf's console know how far the board is; others need not."""
    if method := getattr(console, what, None):
        method(*arguments)


def recent(console: object) -> str:
    """What the board said last, "" where the console keeps no record."""
    return getattr(console, "recent", "")


def await_prompt(console: Any, prompt: str, silence_s: float, within_s: float) -> None:
    """Wait for the end of the boot, asking when it is silent; raises NotReached."""
    begin, asked = time.monotonic(), False
    while (passed := time.monotonic() - begin) < within_s:
        try:
            console.expect([prompt], timeout=min(within_s - passed, silence_s))
        except TIMEOUT:
            # A board that is never silent is asked, too, once half of its time is over.
            silent = getattr(console, "silent_s", 0.0) >= silence_s
            if asked and silent and getattr(diagnose(recent(console)), "permanent", False):
                break
            if silent or passed > within_s / 2:
                console.sendline("")
                asked = True
            continue
        # The line has time to go on: then it was no prompt.
        time.sleep(_QUIET_S)
        if not (output := recent(console)) or re.search(prompt, output):
            return
    seconds = round(time.monotonic() - begin)
    raise NotReached(f"no login prompt within {seconds} s", recent(console))


def post_mortem(power: str, console: object) -> str:
    """Power state and the last lines of the console, as text."""
    tail = getattr(console, "tail", None)
    lines = tail(_POST_MORTEM_LINES) if tail else ["(this console keeps no record)"]
    return "\n".join([f"power: {power}", f"last console line{'s' * (len(lines) != 1)}:", *lines])
