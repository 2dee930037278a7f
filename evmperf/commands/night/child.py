"""One session of a night: a pytest process for one board, and how it ended."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evmperf.benchmarks import control
from evmperf.lab.keeping.claim import Claim
from evmperf.measure.runs import spool
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import EvmperfError, Kind, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import WantedSession, answer
from evmperf.model.results import Status

_END_S = 60.0
"""How long an interrupted session may take to switch its board off and write its report."""
_WITH_US = ("env", "--default-signal=INT", "setpriv", "--pdeathsig", "INT")
"""When the night is killed, its sessions get SIGINT and switch their boards off (coreutils, util-linux)."""


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
        """Measure into the run of that id until `deadline` (seconds since the epoch); `options` are pytest's,
        `but` are cases that are left out, as BENCHMARK/CASE.
        """
        reply_file = self._log.with_suffix(".json")
        session = WantedSession(
            board=str(self._board_file),
            results=str(self._results),
            run_id=run,
            answer=str(reply_file),
            leave_out=tuple(but),
        )
        words = [*_WITH_US, *session.command(), "-p", "no:cacheprovider", *options]
        with self._log.open("ab") as log:
            with self._lock:
                if self._cut:
                    return EndedRun(Ending.CUT, "the night had to end", run)
                self._process = process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **claim.environment},
                    start_new_session=True,
                    close_fds=False,  # it keeps the lock of the board when we are killed
                )
            status = self._wait(process, deadline)
        if status == ExitStatus.NOTHING and but:
            return EndedRun(Ending.MEASURED, "all cases were already measured", run)
        sentence = answer(reply_file, status).sentence
        return outcome(self._results / run, status, sentence, cut=self._cut)

    def cut(self, *, hurry: bool = False) -> None:
        """End the session, which switches the board off, in a `hurry` at once; callable in any thread."""
        with self._lock:
            interrupted, self._cut = self._cut, True
            if self._process and self._process.poll() is None and (hurry or not interrupted):
                self._process.send_signal(signal.SIGINT)

    def _wait(self, process: subprocess.Popen[bytes], deadline: float) -> int:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(max(deadline - time.time(), 0.0))
        self.cut()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_END_S)
        process.kill()
        return process.wait()


def outcome(folder: Path, status: int, sentence_given: str, *, cut: bool) -> EndedRun:
    """What a session's exit status and its run say together."""
    name = folder.name
    try:
        run = spool.read_run(folder)
        results = spool.read_results(folder)
    except UsageError:
        # It did not reach its board.
        wrong = status in (ExitStatus.USAGE, ExitStatus.NOTHING)
        ending = Ending.WRONG if wrong else Ending.LAB
        return EndedRun(Ending.CUT if cut else ending, sentence_given, name)
    measured = sum(result.status is Status.MEASURED for result in results)
    sentence = run.outcome or f"the session ended without a reason (status {status})"
    if run.ending in (Ending.LOST, Ending.WRONG):
        ending = run.ending
    elif status == ExitStatus.OK:
        ending = Ending.MEASURED
    elif cut:
        ending = Ending.CUT
    elif status == ExitStatus.FAILED:
        # Without a sample, every failure may be the board's.
        kinds = {failure.kind for result in results for failure in result.failures}
        dead = kinds == {Kind.BOARD} and not any(result.samples for result in results)
        ending = Ending.BOARD if dead or run.facts.broken else Ending.FAILED
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
