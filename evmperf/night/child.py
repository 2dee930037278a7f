"""One session of a night: a pytest process for one board, and how it ended."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evmperf.benchmarks import control
from evmperf.keeping.claim import JOIN, Claim
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import EvmperfError, Kind, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import WantedSession, answer
from evmperf.model.results import Result, Status
from evmperf.runs import spool

_END_S = 60.0
"""How long an interrupted session may take to switch its board off and write its report."""
_WRAPPER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
signal.signal(signal.SIGINT, signal.SIG_DFL)
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes the session. When the night is killed, its sessions get SIGINT and switch their boards off.
This is a separate program because code between fork and exec can hang in a process with threads.
"""


@dataclass(frozen=True)
class EndedRun(Ended):
    """How a session ended, and how many cases its run measured."""

    run: str
    measured: int = 0


class Child:
    """A pytest that measures on a board which the night holds; one call of `run` a child."""

    def __init__(self, board_file: Path, results: Path, log: Path) -> None:
        self._board_file, self._results, self._log = board_file.absolute(), results, log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._cut = False

    def run(
        self, claim: Claim, run: str, options: Sequence[str], *, but: Sequence[str] = (), deadline: float
    ) -> EndedRun:
        """Measure into the run of that id until `deadline` (seconds since the epoch).

        `options` are pytest's; `but` are cases that are left out, as BENCHMARK/CASE.
        """
        said = self._log.with_suffix(".json")
        wanted = WantedSession(
            board=str(self._board_file),
            results=str(self._results),
            run_id=run,
            answer=str(said),
            leave_out=tuple(but),
        )
        words = [sys.executable, "-I", "-S", "-c", _WRAPPER, str(os.getpid())]
        words += [*wanted.command(), "-p", "no:cacheprovider", *options]
        environment = {**os.environ, JOIN: claim.token, "LG_PLACE": claim.wanted.place}
        if claim.wanted.coordinator:
            environment["LG_COORDINATOR"] = claim.wanted.coordinator
        with self._log.open("ab") as log:
            with self._lock:
                if self._cut:
                    return EndedRun(Ending.CUT, "the night had to end", run)
                self._process = process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            status = self._wait(process, deadline)
        if status == ExitStatus.NOTHING and but:
            return EndedRun(Ending.MEASURED, "all cases were already measured", run)
        sentence = answer(said, status).sentence
        return outcome(self._results / run, status, sentence, cut=self._cut)

    def cut(self, *, hurry: bool = False) -> None:
        """End the session, which switches the board off; callable in any thread. In a `hurry` the
        session leaves out everything else.
        """
        with self._lock:
            told, self._cut = self._cut, True
            if self._process and self._process.poll() is None and (hurry or not told):
                self._process.send_signal(signal.SIGINT)

    def _wait(self, process: subprocess.Popen[bytes], deadline: float) -> int:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(max(deadline - time.time(), 0.0))
        self.cut()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_END_S)
        process.kill()
        return process.wait()


def outcome(folder: Path, status: int, said: str, *, cut: bool) -> EndedRun:
    """What a session's exit status and its run say together."""
    name = folder.name
    try:
        run = spool.read_run(folder)
        results = spool.read_results(folder)
    except UsageError:
        # It did not reach its board.
        wrong = status in (ExitStatus.USAGE, ExitStatus.NOTHING)
        ending = Ending.WRONG if wrong else Ending.LAB
        return EndedRun(Ending.CUT if cut else ending, said, name)
    measured = sum(result.status is Status.MEASURED for result in results)
    sentence = run.outcome or f"the session ended without a reason (status {status})"
    if run.ending in (Ending.LOST, Ending.WRONG):
        ending = run.ending
    elif status == ExitStatus.OK:
        ending = Ending.MEASURED
    elif cut:
        ending = Ending.CUT
    elif status == ExitStatus.FAILED:
        dead = run.facts.broken or _is_dead(results)
        ending = Ending.BOARD if dead else Ending.FAILED
    else:
        ending = Ending.LAB
    return EndedRun(ending, sentence, name, measured)


def measured_in(folder: Path) -> list[str]:
    """The cases that a run has measured, as BENCHMARK/CASE; none where there is no run."""
    with contextlib.suppress(EvmperfError):
        return [
            f"{result.benchmark}/{result.case}"
            for result in spool.read_results(folder)
            if result.status is Status.MEASURED and result.benchmark != control.NAME
        ]
    return []


def _is_dead(results: Sequence[Result]) -> bool:
    """Whether there is no sample and every failure is the board's."""
    kinds = {failure.kind for result in results for failure in result.failures}
    return kinds == {Kind.BOARD} and not any(result.samples for result in results)


def why(folder: Path) -> str:
    """The sentence of a run's first failure that is not a tool's, with the phase of a boot."""
    with contextlib.suppress(EvmperfError):
        for result in spool.read_results(folder):
            for failure in result.failures:
                if failure.kind in (Kind.BOARD, Kind.LAB):
                    return failure.message
    return ""
