"""An end for what would wait for a console for ever."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from pexpect import TIMEOUT


@contextlib.contextmanager
def deadline(seconds: float, message: str) -> Iterator[None]:
    """Raise TIMEOUT out of whatever blocks after so long.

    By a signal, not a thread: Labgrid's record of steps is of one thread. Signals are of the main
    thread, so there is no deadline elsewhere.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(*_: object) -> None:
        raise TIMEOUT(f"{message} for {seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
