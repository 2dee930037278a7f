"""A person at a terminal who works the board's power, and may say that it is enough."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from evmperf.model.errors import LabError, Stopped
from evmperf.model.outlets import plain

_STDIN = 0
_LINE_BYTES = 4096
_CLEAR = "\r\x1b[K"


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
                self._write(question)
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

    @staticmethod
    def _write(question: str) -> None:
        clear = _CLEAR if sys.stderr.isatty() else ""
        print(f"{clear}{plain(question)}  (s and Enter: give up)", file=sys.stderr, flush=True)
