"""What is shown beside pytest's capturing: lines, questions, and signs of life while a case is measured
(a line that is written over on a terminal, and one now and then in a log).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from evmperf.model import outlets

_TERMINAL_S = 1.0
_LOG_S = 30.0
"""Seconds between two signs: a log keeps them all."""
_COLUMNS = 80
"""What a terminal has that does not say."""
_CLEAR = "\r\x1b[K"


class Ticker:
    """Writes what `say` returns again and again, beside pytest's capturing, until `close`.

    pytest captures what is written while a test runs; this has a descriptor of its own, taken before.
    """

    def __init__(self, say: Callable[[], str]) -> None:
        self._say = say
        self._out = os.dup(1)
        self._terminal = os.isatty(self._out)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="ticker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give no more signs, leave the terminal's line empty, and give up the descriptor."""
        self._end.set()
        self._thread.join()
        os.close(self._out)

    def _tick(self) -> None:
        shown = False
        while not self._end.wait(_TERMINAL_S if self._terminal else _LOG_S):
            begin, end = (_CLEAR, "") if self._terminal else ("", "\n")
            if line := self._line():  # there is nothing to say while a person is asked
                self._write(f"{begin}{line}{end}")
            shown = bool(line)
        if shown and self._terminal:
            self._write(_CLEAR)

    def _line(self) -> str:
        line = outlets.line(self._say())
        if self._terminal:
            columns = os.get_terminal_size(self._out).columns or _COLUMNS
            line = line[: columns - 1]
        return line

    def _write(self, text: str) -> None:
        with suppress(OSError):  # nobody reads any more
            os.write(self._out, text.encode("utf-8", "replace"))


@contextmanager
def aside(config: pytest.Config) -> Iterator[None]:
    """Give the terminal back for a question and its answer."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if not capture:
        yield
        return
    with capture.global_and_fixture_disabled():
        capture.suspend_global_capture(in_=True)
        yield


def teller(config: pytest.Config) -> Callable[[str], None]:
    """A function that shows a line at once, in spite of pytest's capturing."""
    capture = config.pluginmanager.getplugin("capturemanager")
    reporter = config.pluginmanager.getplugin("terminalreporter")

    def tell(line: str) -> None:
        if reporter and capture:
            with capture.global_and_fixture_disabled():
                reporter.write_line(outlets.plain(line))

    return tell
