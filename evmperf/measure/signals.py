"""Ends a process on signals: SIGTERM and a closed terminal act like Ctrl-C."""

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A cancelled CI job and `timeout` send SIGTERM, a closed terminal or connection SIGHUP."""


_SAME_S = 1.0
"""Seconds within which two signals are one: the terminal and whoever started us both send it, Python's wait
for a process takes a quarter of a second to notice, and a person's second Ctrl-C comes later.
"""


class Signals:
    """Raises KeyboardInterrupt at a signal; within `held` a signal only ends `skippable` work."""

    def __init__(self) -> None:
        self.by = ""
        """The first signal's name, "" before."""
        self.hurried = False
        """Whether a signal arrived while the process was ending."""
        self._held = 0
        self._skippable = False
        self._heard = -_SAME_S

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Handle the signals within the block (main thread); ignored signals stay ignored."""
        with listening(self._hear):
            yield

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Complete the block despite signals."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    @contextlib.contextmanager
    def skippable(self) -> Iterator[None]:
        """Within `held`: a signal ends this block; the code after it runs."""
        try:
            self._skippable = True
            yield
            self._skippable = False
        except KeyboardInterrupt:
            pass  # `_hear` raises it once
        finally:
            self._skippable = False

    def _hear(self, number: int, _: object) -> None:
        if number == signal.SIGINT:
            now, before = time.monotonic(), self._heard
            self._heard = now
            if now - before < _SAME_S:
                return
        self.hurried = self.hurried or bool(self.by or self._held)
        self.by = self.by or signal.Signals(number).name
        if self._skippable or not self._held:
            self._skippable = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def listening(hear: Callable[[int, object], None]) -> Iterator[None]:
    """Call `hear` at the signals that end a process, except ignored ones (nohup)."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        heard = [n for n in SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, hear) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def attend(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that measures on our terminal; its exit status. A signal is passed on, and the
    process ends in its own time: it puts back what it changed. One of the terminal reaches it twice, and
    counts once.
    """
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def leave(process: subprocess.Popen[bytes], within_s: float) -> None:
    """End a process with a board, and wait for its release; kill it late. Passes on Ctrl-C."""
    deadline = time.monotonic() + within_s
    process.terminate()
    while True:
        try:
            process.wait(max(deadline - time.monotonic(), 0.0))
        except KeyboardInterrupt:
            process.terminate()
        except subprocess.TimeoutExpired:
            process.kill()
            deadline = float("inf")
        else:
            return
