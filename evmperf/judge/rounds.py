"""Measuring rounds, each a pytest session of its own, as a person at a desk would start it; in blocks
of one round of each side in random order, for A/B and confirmation.
"""

import fnmatch
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from evmperf.benchmarks import catalogue, wording
from evmperf.judge.experiment import INTERRUPTED, NOTHING, Experiment, Round
from evmperf.measure.runs import spool
from evmperf.measure.signals import leave
from evmperf.model.errors import BoardError, LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.model.replies import WantedSession, answer

LOG = "rounds.log"
_ANSWER = "session.json"
_LEAVE_S = 90.0
"""How long an interrupted session may take to put the board back."""
_STILL_S = 600.0
"""How long a session of an earlier, killed call may go on before we give up waiting for it."""
_FRUITLESS = 3
"""Blocks in a row without both sides after which the board is what is broken."""


@dataclass(frozen=True)
class Session:
    """How a session ended: the run's name ("" for none), exit status, seconds, and its last sentence."""

    run: str
    status: int
    seconds: float
    sentence: str = ""


@dataclass
class Sessions:
    """Measures into one folder."""

    folder: Path

    def measure(self, session: WantedSession) -> Session:
        """Measure one round. KeyboardInterrupt is raised after the session has put the board back.

        Raises UsageError for a call that pytest refuses.
        """
        before = self._runs()
        file = self.folder / _ANSWER
        asked = structs.replace(session, results=str(self.folder), answer=str(file))
        began = time.monotonic()
        with (self.folder / LOG).open("ab") as log:
            log.write(f"\n=== {' '.join((*session.fact, *session.vary))}\n".encode())
            log.flush()
            process = subprocess.Popen(
                # Started in the background of a script, we inherit an ignored Ctrl-C.
                ["env", "--default-signal=INT", *asked.command(), "-p", "no:cacheprovider"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # It hears of the end from us alone: a second signal would hurry it.
                start_new_session=True,
                close_fds=False,  # it keeps the lock of the board when we are killed
            )
            try:
                status = process.wait()
            except BaseException:
                leave(process, _LEAVE_S)
                raise
        sentence = answer(file, status).sentence
        if status in (ExitStatus.USAGE, ExitStatus.NOTHING):
            raise UsageError(sentence)
        new = max(self._runs() - before, default="")
        return Session(new, status, time.monotonic() - began, sentence)

    def round(self, experiment: Experiment, entry: Round, leave_out: Collection[str]) -> None:
        """Measure a round without some cases, and fill in what it gave. Raises LabError, and what
        `measure` raises.
        """
        session = self.measure(
            WantedSession(
                board=experiment.board,
                vary=tuple(experiment.sides[entry.side]),
                select=experiment.select,
                profile=experiment.profile,
                run_kind="ab",
                fact=(f"ab={experiment.id} block {entry.block} side {entry.side}",),
                boots=experiment.boots,
                leave_out=(*experiment.leave_out, *leave_out),
            )
        )
        entry.status, entry.seconds = session.status, session.seconds
        if session.status == ExitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        if session.status in (ExitStatus.LAB_BROKEN, ExitStatus.INTERNAL):
            entry.left_out = "the lab was broken"
            raise LabError(session.sentence)
        if session.run and (results := spool.read_results(self.folder / session.run)):
            entry.run = session.run
            measured = figures(results).items()
            entry.value = next((f.mean for key, f in measured if matches(key, experiment.metrics)), None)
        entry.left_out = "" if entry.run else f"{NOTHING}: {session.sentence}"

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


MeasureRound = Callable[[Experiment, Round, Collection[str]], None]
"""See `Sessions.round`."""


def matches(key: Key, patterns: Sequence[str]) -> bool:
    """Whether a metric is one of `benchmark/case/metric`, in which `*` stands for anything; a case may be
    named as in tables.
    """
    named = (key, key._replace(case=wording.case(key.benchmark, key.case)))
    return any(fnmatch.fnmatchcase("/".join(one), pattern) for one in named for pattern in patterns)


def besides(benchmarks: Iterable[str], profile: str, wanted: Collection[str]) -> list[str]:
    """The cases that pytest's -k selects by the names of these benchmarks besides the wanted ones; all as
    BENCHMARK/CASE.
    """
    near = [b for name, b in catalogue.benchmarks().items() if any(one in name for one in benchmarks)]
    return sorted({f"{b.name}/{case.label}" for b in near for case in b.cases(profile)}.difference(wanted))


def measure_block(
    folder: Path, experiment: Experiment, measure: MeasureRound, leave_out: Collection[str] = ()
) -> None:
    """Measure one block of an experiment, which is saved in a folder after each round, so that a later call
    goes on after whatever ended this one.

    Raises LabError when the lab is broken, BoardError when several blocks in a row did not have both
    sides, KeyboardInterrupt as it comes.
    """
    number = experiment.next_block
    for side in experiment.order(number):
        entry = Round(number, side, left_out=INTERRUPTED)
        experiment.rounds.append(entry)
        experiment.save(folder)
        try:
            measure(experiment, entry, leave_out)
        finally:
            experiment.save(folder)
    experiment.leave_out_halves()
    experiment.save(folder)
    failed = [r for r in experiment.rounds if r.block > number - _FRUITLESS and r.failed]
    if len({entry.block for entry in failed}) == _FRUITLESS:
        sides = [entry.side for entry in failed]
        counts = ", ".join(f"{side.upper()} failed {sides.count(side)} times" for side in experiment.sides)
        raise BoardError(
            f"{experiment.board}: {_FRUITLESS} blocks in a row were not measured on both sides "
            f"({counts}): {failed[-1].left_out}"
        )
