"""How a process ends that is told to from outside: SIGTERM and a lost terminal are Ctrl-C, too."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A cancelled CI job and `timeout` send SIGTERM, a closed terminal or connection SIGHUP."""


class Signals:
    """Raises KeyboardInterrupt at a signal, but not within `held`: what must be done is done there,
    and a signal only ends what is `skippable`.
    """

    def __init__(self) -> None:
        self.by = ""
        """The first signal's name, "" before."""
        self.hurried = False
        """Whether a signal came while the process was ending already."""
        self._held = 0
        self._skippable = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Listen to the signals meanwhile, in the main thread; those that are ignored stay so."""
        with listening(self._hear):
            yield

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Do this to its end."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    @contextlib.contextmanager
    def skippable(self) -> Iterator[None]:
        """Within `held`: a signal ends this, and what follows the block is done."""
        try:
            self._skippable = True
            yield
            self._skippable = False
        except KeyboardInterrupt:
            pass  # `_hear` raises it once
        finally:
            self._skippable = False

    def _hear(self, number: int, _: Any) -> None:
        self.hurried = self.hurried or bool(self.by or self._held)
        self.by = self.by or signal.Signals(number).name
        if self._skippable or not self._held:
            self._skippable = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def listening(hear: Callable[[int, Any], None]) -> Iterator[None]:
    """Have `hear` called at the signals that end a process, but not at ignored ones (nohup)."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        heard = [n for n in SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, hear) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(process: subprocess.Popen[bytes], within_s: float) -> None:
    """End a process that has a board, and wait until it has put the board back; kill it when that
    takes longer. A further Ctrl-C is passed on.
    """
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
