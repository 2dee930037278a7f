"""One session of a night: a pytest process for one board, and how it ended."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec.structs import replace

from evmperf.benchmarks import control
from evmperf.measure.runs import spool
from evmperf.measure.signals import leave
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import EvmperfError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import WantedSession, answer
from evmperf.model.results import Status

_END_S = 60.0
"""How long an interrupted session may take to switch its board off and write its report."""
_LOOK_S = 0.2
_WITH_US = ("env", "--default-signal=INT", "setpriv", "--pdeathsig", "INT")
"""Before a command: when the night is killed, it gets SIGINT and switches its board off (coreutils,
util-linux).
"""


def start(words: Sequence[str], variables: Mapping[str, str], output: IO[Any]) -> subprocess.Popen[bytes]:
    """Start a command with these further variables; what it prints goes into the file `output`."""
    return subprocess.Popen(
        [*_WITH_US, *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **variables},
        start_new_session=True,
        close_fds=False,  # it keeps the lock of the board when we are killed
    )


def run(
    wanted: WantedSession,
    options: Sequence[str],
    board: Mapping[str, str],
    log: Path,
    over: Callable[[], bool],
) -> Ended:
    """Measure in a process with the variables that share the held `board`; `options` are pytest's. `over`
    tells whether the session has to end.
    """
    reply = log.with_suffix(".json")
    words = [*replace(wanted, answer=str(reply)).command(), "-p", "no:cacheprovider", *options]
    with log.open("ab") as output:
        process = start(words, board, output)
        told = False
        while process.poll() is None:
            if told := over():
                leave(process, _END_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
    if process.returncode == ExitStatus.NOTHING and wanted.leave_out:
        return Ended(Ending.MEASURED, "all cases were already measured")
    where = "" if reply.is_file() else f"; see {log}"
    said = answer(reply, process.returncode)
    if told and said.ending is Ending.LAB:  # it had to be killed, and gave no answer
        return Ended(Ending.CUT, said.sentence)
    outside = process.returncode == ExitStatus.FAILED and said.ending is Ending.MEASURED
    return Ended(Ending.FAILED if outside else said.ending, f"{said.sentence}{where}")


def measured_in(folder: Path) -> list[str]:
    """The cases that a run has measured, as BENCHMARK/CASE; none where there is no run."""
    with contextlib.suppress(EvmperfError):
        return [
            f"{result.benchmark}/{result.case}"
            for result in spool.read_results(folder)
            if result.status is Status.MEASURED and result.benchmark != control.NAME
        ]
    return []
