"""One round of a search on a real board, and candidates that must be built first."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from evmperf.model.errors import LabError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import figures
from evmperf.regress.ab import matches
from evmperf.regress.experiment import Round
from evmperf.regress.search import Search
from evmperf.regress.sessions import Sessions, WantedSession
from evmperf.runs import spool

BUILD_LOG = "build.log"


class OnABoard:
    """Measures rounds of a search with pytest sessions, into its folder."""

    def __init__(self, folder: Path, have: Callable[[str], None]) -> None:
        """`have` holds a board and lets go of any other; raises LabError."""
        self._folder, self._have = folder, have
        self._sessions = Sessions(folder)

    def measure(self, search: Search, entry: Round) -> None:
        """See `evmperf.regress.search.VersionMeasurer`. The median of the metric's samples counts."""
        self._have(search.board)
        benchmark, case, _ = search.metric.split("/")
        session = self._sessions.measure(
            WantedSession(
                search.board,
                search.words(entry.side, entry.version),
                search.select or f"{benchmark}-{case}",
                search.profile,
                kind="bisect",
                boots=search.boots,
                facts=(f"bisect={search.id} block {entry.block} {entry.side} {entry.version}",),
            )
        )
        entry.run, entry.seconds = session.run, session.seconds
        if session.status == ExitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        if session.status in (ExitStatus.LAB_BROKEN, ExitStatus.INTERNAL):
            raise LabError(self._sessions.last_words())
        if session.run:
            found = figures(spool.read_results(self._folder / session.run))
            values = [f.centre for key, f in found.items() if matches(key, [search.metric])]
            entry.value = values[0] if values and values[0] > 0 else None


def build(command: str, version: str, folder: Path, repository: Path | None = None) -> bool:
    """Build a version with the user's shell command, which finds it in $VERSION, in a checkout of
    it; what it prints goes to build.log. False when it does not build.
    """
    with (folder / BUILD_LOG).open("ab") as log:
        log.write(f"\n=== {version}\n".encode())
        log.flush()
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=repository,
            env={**os.environ, "VERSION": version},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0
