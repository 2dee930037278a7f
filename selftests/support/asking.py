"""`evmperf lab ask` in a process of its own, as a person at a terminal."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from evmperf.measure.hostload import slowness
from selftests.support import programs


class Asker:
    """A person who asks for a board."""

    def __init__(self, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
        self.log = Path(tempfile.mkdtemp(prefix="asker-"), "log")
        command = [sys.executable, "-u", "-m", "evmperf", "lab", "ask", *words]
        self.process = programs.start(self.log, *command, environment=environment)

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def has_it(self) -> bool:
        assert self.process.poll() is None, self.said
        return "is yours until" in self.said

    def give_back(self) -> int:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60 * slowness())


@contextlib.contextmanager
def asking(environment: Mapping[str, str], *words: str) -> Iterator[Asker]:
    asker = Asker(environment, words)
    try:
        yield asker
    finally:
        programs.end(asker.process)
        shutil.rmtree(asker.log.parent)
