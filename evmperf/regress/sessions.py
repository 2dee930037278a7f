"""Measuring one round: a pytest session of its own, as a person at a desk would start it."""

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evmperf.measure.signals import leave
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import answer
from evmperf.runs import spool

LOG = "rounds.log"
_ANSWER = "session.json"
_LEAVE_S = 90.0
"""How long an interrupted session may take to put the board back."""
_STILL_S = 600.0
"""How long a session of an earlier, killed call may go on before we give up waiting for it."""


@dataclass(frozen=True)
class WantedSession:
    """What one session measures: pytest's `select`, and which cases (`benchmark/case`) not."""

    board: str
    words: Sequence[str]
    select: str = ""
    profile: str = ""
    kind: str = "ab"
    facts: Sequence[str] = ()
    leave_out: Iterable[str] = ()
    boots: int = 0
    """Cold boots of a case of boot times, 0 those of the profile."""


@dataclass(frozen=True)
class Session:
    """How a session ended: the run's name ("" for none), exit status, and seconds."""

    run: str
    status: int
    seconds: float


class Sessions:
    """Measures into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._said = ""

    def measure(self, wanted: WantedSession) -> Session:
        """Measure one round. KeyboardInterrupt is raised after the session has put the board back.

        Raises UsageError for a call that pytest refuses.
        """
        before = self._runs()
        began = time.monotonic()
        with (self.folder / LOG).open("ab") as log:
            log.write(f"\n=== {' '.join(wanted.facts)} {' '.join(wanted.words)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                _command(wanted, self.folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # It hears of the end from us alone: a second signal would hurry it.
                start_new_session=True,
            )
            try:
                status = process.wait()
            except BaseException:
                leave(process, _LEAVE_S)
                raise
        new = sorted(self._runs() - before)
        self._said = answer(self.folder / _ANSWER, status).sentence
        if status in (ExitStatus.USAGE, ExitStatus.NOTHING):
            raise UsageError(self._said)
        return Session(new[-1] if new else "", status, time.monotonic() - began)

    def last_words(self) -> str:
        """What the last session said at its end."""
        return self._said

    def wait_for_others(self) -> None:
        """Wait until no run below the folder is still being measured: a call that was killed may
        have left its session. Raises LabError for one that does not end.
        """
        deadline = time.monotonic() + _STILL_S
        for name in sorted(self._runs()):
            while spool.is_live(self.folder / name):
                if time.monotonic() > deadline:
                    raise LabError(f"{self.folder / name}: is still being measured; end its pytest first")
                time.sleep(0.5)

    def _runs(self) -> set[str]:
        return {file.parent.name for file in self.folder.glob("*/run.json")}


def _command(wanted: WantedSession, folder: Path) -> list[str]:
    return [
        # Started in the background of a script, we inherit an ignored Ctrl-C.
        "env",
        "--default-signal=INT",
        sys.executable,
        "-m",
        "pytest",
        "--lg-env",
        wanted.board,
        f"--results={folder}",
        f"--answer={folder / _ANSWER}",
        f"--run-kind={wanted.kind}",
        "-p",
        "no:cacheprovider",
        *([f"--boots={wanted.boots}"] if wanted.boots else []),
        *(["-k", wanted.select] if wanted.select else []),
        *([f"--profile={wanted.profile}"] if wanted.profile else []),
        *(word for fact in wanted.facts for word in ("--fact", fact)),
        *(word for given in wanted.words for word in ("--vary", given)),
        *(word for case in sorted(wanted.leave_out) for word in ("--leave-out", case)),
    ]
