"""`evmperf lab ask` in a process of its own, as a person at a terminal."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from evmperf.measure.hostload import slowness
from selftests.support.placelab import REPOSITORY


class Asker:
    """A person who asks for a board."""

    def __init__(self, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
        self.log = Path(tempfile.mkdtemp(prefix="asker-"), "log")
        command = ["env", "--default-signal=INT", sys.executable, "-u", "-m", "evmperf", "lab", "ask", *words]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT, env=dict(environment)
            )

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
        if asker.process.poll() is None:
            asker.process.kill()
        asker.process.wait()
        shutil.rmtree(asker.log.parent)
