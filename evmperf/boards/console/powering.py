"""Ways to take a board's power away and give it back: a switch, a person, software, or none.

A boot is cold after a switch, and after a person where the console showed that the board went off;
it is warm after a reset by software or by a reset line.
"""

import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pexpect import TIMEOUT

from evmperf.boards.console.attempt import tell
from evmperf.boards.console.record import ASKED_OFF, ASKED_ON, RESET, RESET_LINE
from evmperf.model.errors import BoardError, BoardLost, LabError, Stopped, UsageError
from evmperf.model.outlets import plain

_STDIN = 0
_LINE_BYTES = 4096
_CLEAR = "\r\x1b[K"
_PROBE_S = 0.4
"""Between two newlines to a board that is about to be switched off."""
_SILENT_S = 3.0
"""A board that answered newlines and says nothing for so long is off."""
_LISTEN_S = 0.05
_LOOK_S = 10.0
_ANSWER_S = 5
_LOADER = re.compile(r"U-Boot (?:SPL )?\d{4}\.\d\d|NOTICE:  BL\d")


class Person:
    """Whoever sits at standard input; `aside` makes room for a question (pytest's capture)."""

    def __init__(self, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self.asking = False
        """Whether a question is open: nothing else may write to the terminal meanwhile."""
        self._aside = aside

    @contextmanager
    def asked(self, question: str) -> Iterator[None]:
        """Show a question; within the block `answered` listens."""
        with self._aside():
            self.asking = True
            try:
                clear = _CLEAR if sys.stderr.isatty() else ""
                print(f"{clear}{plain(question)}  (s and Enter: give up)", file=sys.stderr, flush=True)
                yield
            finally:
                self.asking = False

    def answered(self, within_s: float) -> bool:
        """Whether Enter was pressed in time; raises Stopped (a line with s or q) or LabError (nobody)."""
        if not select.select([_STDIN], [], [], within_s)[0]:
            return False
        line = os.read(_STDIN, _LINE_BYTES)
        if not line:
            raise LabError(
                "a person must switch the board's power, but standard input is closed: start this "
                "in a terminal, or give the board a power switch"
            )
        if line.strip().lower()[:1] in (b"s", b"q"):
            raise Stopped("the person at the terminal gave up")
        return True


class Overdue(TIMEOUT):
    """What `deadline` raises."""


@contextmanager
def _alarm(seconds: float, ring: Callable[[], None]) -> Iterator[None]:
    """Call `ring` after so long, out of whatever blocks, by a signal (Labgrid's record of steps is of one
    thread); without effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, began = signal.signal(signal.SIGALRM, lambda *_: ring()), time.monotonic()
    others_s, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # as pytest-timeout's
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if others_s:
            signal.setitimer(signal.ITIMER_REAL, max(others_s - (time.monotonic() - began), 0.001))


@contextmanager
def deadline(seconds: float, message: str) -> Iterator[None]:
    """Raise Overdue out of whatever blocks after so long, in the main thread."""

    def expire() -> None:
        raise Overdue(f"{message} for {seconds} s")

    with _alarm(seconds, expire):
        yield


@contextmanager
def while_powered(way: Any, console: Any, doing: str) -> Iterator[None]:
    """Raise BoardError out of whatever blocks once the power switch says off and the console, where there is
    one, is silent; both are asked every 10 s, in the main thread.
    """

    def look() -> None:
        if console is None or console.silent_s >= _LOOK_S:
            try:
                state = way.state()
            except Exception:  # noqa: BLE001  # a switch that does not answer says nothing, and is left alone
                return
            if state == "off":
                raise BoardError(
                    f"the board's power went off during {doing}: its power switch says off, so somebody "
                    f"switched it, or the QEMU of a virtual EVM ended (`evmperf virtual status`)"
                )
        signal.setitimer(signal.ITIMER_REAL, _LOOK_S)

    with _alarm(_LOOK_S, look):
        yield


class Switch:
    """A power driver of Labgrid's; `seen_off` says of each way whether the last power-off is known
    to have happened. One that hangs would be waited for without end."""

    seen_off = True
    line: object = None

    def __init__(self, driver: object, console: object, timeout_s: float) -> None:
        self._driver = driver
        self._console = console
        self._timeout_s = timeout_s

    def off(self) -> None:
        """Switch off."""
        self._work("off")

    def on(self, silence_s: float, awaits: str = "await_uboot") -> None:
        """Switch on."""
        tell(self._console, "stage", awaits, silence_s)
        self._work("on")

    def state(self) -> str:
        """What the switch says; a driver need not be able to."""
        if not hasattr(self._driver, "get"):
            return "unknown (its driver cannot tell)"
        return "on" if self._work("get") else "off"

    def _work(self, action: str) -> object:
        with deadline(self._timeout_s, "the power switch has not answered"):
            return getattr(self._driver, action)()


class Hand:
    """A person; the console tells what they did, so that no boot counts which nobody saw begin."""

    line: object = None

    def __init__(self, console: Any, person: Person, patience_s: float) -> None:
        self.seen_off = False
        self.is_off = False
        self._console = console
        self._person = person
        self._patience_s = patience_s
        self._came_back = False

    def off(self) -> None:
        """Ask for the power to be taken away until the board answers no more."""
        self._came_back = False
        self._console.restart(ASKED_OFF)
        answered = self._answers()
        question = "Switch the board OFF (its plug or its switch)."
        if not answered:
            question += " Its console is silent: press Enter when it is off."
        began = time.monotonic()
        with self._person.asked(question):
            entered = False
            while not (self._console.silent_s > _SILENT_S and (answered or entered)):
                self._newline()
                entered = self._person.answered(_PROBE_S) or entered
                if _LOADER.search(self._console.output()):
                    self._came_back = True  # too fast to be seen off: it boots, and counts not
                    break
                self._check(began, "off")
        self.seen_off, self.is_off = answered and not self._came_back, not self._came_back

    def on(self, silence_s: float, awaits: str = "await_uboot") -> None:
        """Ask for the power until the board says something, or the person that it is on."""
        if self._came_back:
            return
        self._console.stage(awaits)
        self._console.restart(ASKED_ON)
        began = time.monotonic()
        question = "Switch the board ON. If its console stays silent, press Enter."
        with self._person.asked(question):
            while not self._console.output() and not self._person.answered(_LISTEN_S):
                self._check(began, "on")
        self.is_off = False
        self._console.stage("", silence_s)

    def state(self) -> str:
        """A person's switch cannot be asked."""
        return "switched by hand"

    def _answers(self) -> bool:
        for _ in range(4):
            self._newline()
            time.sleep(_PROBE_S)
            if self._console.output():
                return True
        return False

    def _newline(self) -> None:
        try:
            self._console.sendline("")
        except BoardLost:
            raise
        except LabError:
            pass  # an adapter that is fed by the board goes with it

    def _check(self, began: float, side: str) -> None:
        if time.monotonic() - began > self._patience_s:
            raise LabError(
                f"the board was not switched {side} within {self._patience_s:g} s, or its console "
                f"did not show it: `hand_timeout` of the strategy is the limit"
            )


class NoSwitch:
    """No way to take the power away: `how` is `reset`, by the line's driver where there is one and by
    software where not, or `none`."""

    seen_off = False

    def __init__(self, how: str, line: Any = None, timeout_s: float = 0.0) -> None:
        self.how = how
        self.line = line
        self._timeout_s = timeout_s

    def pulse(self, console: object) -> None:
        """Reset the board by its line, whatever it is doing; raises LabError when its driver hangs."""
        tell(console, "restart", RESET_LINE)
        with deadline(self._timeout_s, "the reset line has not answered"):
            self.line.reset()

    def off(self) -> None:
        """Raise UsageError."""
        raise UsageError(
            "the board's power must be switched, but it has no switch: add a power driver "
            "to the board file (ManualPowerDriver asks a person)"
        )

    def on(self, silence_s: float, awaits: str = "") -> None:
        """Raise UsageError."""
        self.off()

    def state(self) -> str:
        """Why it is not known."""
        return "not known (there is no switch)"


Way = Switch | Hand | NoSwitch


def reset(console: Any, uboot: str, login: str, log_in: Callable[[], None]) -> None:
    """Reset a board from U-Boot or Linux, told by their prompts; raises BoardError without a login."""
    console.sendline("")
    ends = [rf"(?:{uboot})(?=\Z)", login, r"[#$] (?=\Z)", TIMEOUT]
    command = "reset"
    if console.expect(ends, timeout=_ANSWER_S)[0]:
        command = "reboot"
        try:
            log_in()
        except Exception as error:
            raise BoardError(
                f"the board cannot be reset by software, as no login works ({error}): switch "
                f"it off and on by hand"
            ) from error
    tell(console, "restart", RESET)
    console.sendline(command)
