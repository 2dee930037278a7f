"""The night: for each job a thread that waits for its board, measures, and tries once more."""

import contextlib
import enum
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.boards import board as boards
from evmperf.commands.night import child
from evmperf.commands.night.folder import NightFolder
from evmperf.commands.night.plan import Job, NightPlan, board_file
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import Claim
from evmperf.measure.runs import spool
from evmperf.model.ended import Ended, Ending
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.replies import WantedSession
from evmperf.model.run import NIGHT
from evmperf.model.units import seconds

_WAIT_S = 10.0
"""How long a job that waits for its board keeps what it shares with other jobs."""
_PAUSE_S = 2.0
_WORTH_ANOTHER_TRY = (Ending.LAB, Ending.BOARD, Ending.LOST)
"""Ends of a session after which the missing cases are measured once more."""


class Doing(enum.StrEnum):
    """What happens to a job that has not ended; see `Ending` for how it ends."""

    WAITING = "waiting"
    MEASURING = "measuring"
    GIVEN_UP = "given up"
    """No board is left to try, or no time."""


_GOES_ON = (Doing.WAITING, Doing.MEASURING, *_WORTH_ANOTHER_TRY)


@dataclass
class Progress:
    """The state of a job; `runs` measured for it, oldest first; `failed`: one ended as the lab failed it."""

    job: Job
    state: Doing | Ending = Doing.WAITING
    place: str = ""
    sentence: str = ""
    runs: list[str] = field(default_factory=list)
    failed: bool = False

    @property
    def done(self) -> bool:
        """Whether the job has ended."""
        return self.state not in _GOES_ON


class NightConductor:
    """Measures a plan; `progress` may be read by other threads at any time."""

    def __init__(
        self, plan: NightPlan, results: Path, folder: NightFolder, tell: Callable[[str], None]
    ) -> None:
        self.plan, self.results, self.folder, self.until = plan, results, folder, folder.until
        self.progress = [Progress(job, runs=folder.runs(job)) for job in plan.boards]
        for progress in self.progress:
            with contextlib.suppress(UsageError, IndexError):  # not begun, or it did not reach its board
                if (run := spool.read_run(results / progress.runs[-1])).ending is Ending.MEASURED:
                    progress.state, progress.place = Ending.MEASURED, run.place
        self._say = tell
        self._ending = threading.Event()
        self._limits = {name: threading.Semaphore(n) for name, n in plan.limits.items()}
        self._at_once = threading.Semaphore(plan.at_once or len(plan.boards))

    def measure(self) -> None:
        """Measure all jobs; returns when all are done or the night has to end."""
        threads = [threading.Thread(target=self._job, args=[p]) for p in self.progress if not p.done]
        for thread in threads:
            thread.start()
            self._ending.wait(seconds(self.plan.stagger))
        for thread in threads:
            thread.join()

    def end(self) -> None:
        """End all sessions, which switch their boards off."""
        self._ending.set()

    def _goes_on(self) -> bool:
        return not self._ending.is_set() and time.time() < self.until

    def _job(self, progress: Progress) -> None:
        try:
            while not progress.done and self._goes_on():
                with contextlib.ExitStack() as stack:
                    # All jobs use one order: no two jobs can wait for each other.
                    for limit in (self._at_once, *(self._limits[n] for n in sorted({*progress.job.uses}))):
                        stack.enter_context(limit)
                    if self._goes_on() and (claim := self._claim(progress)):
                        stack.callback(claim.close)
                        if self._goes_on():
                            self._session(progress, claim)
                        continue
                self._ending.wait(_PAUSE_S)  # others take what it shares with them
        except EvmperfError as error:
            progress.sentence = str(error)
        if not progress.done:
            progress.state, progress.sentence = Doing.GIVEN_UP, progress.sentence or "the night had to end"
            self._tell(progress, f"given up: {progress.sentence}")

    def _claim(self, progress: Progress) -> Claim | None:
        """Hold the board of a job; None while somebody else has it or the coordinator does not answer, which
        may be restarting. Raises UsageError where there is no such board.
        """
        before, busy = progress.sentence, False

        def waiting(sentence: str) -> None:
            nonlocal busy
            busy, progress.state, progress.sentence = True, Doing.WAITING, sentence
            if sentence != before:
                self._tell(progress, f"waiting: {sentence}")

        try:
            return Claim.take(
                self.plan.placement(progress.job),
                self.folder.path.name,
                wait_s=max(min(_WAIT_S, self.until - time.time()), 0.0),
                tell=waiting,
            )
        except LabError as error:
            waiting(str(error))
        except UsageError:
            if not busy:
                raise
        return None

    def _session(self, progress: Progress, claim: Claim) -> None:
        """Measure once on a board that is held, what earlier runs of the job have not measured."""
        job, board, place = progress.job, board_file(progress.job).absolute(), claim.board.place
        wanted = WantedSession(
            board=str(board),
            results=str(self.results),
            run_id=spool.new_run_id(boards.load(board).name),
            leave_out=tuple(case for run in progress.runs for case in child.measured_in(self.results / run)),
        )
        progress.state, progress.place = Doing.MEASURING, place
        progress.runs.append(wanted.run_id)
        self._tell(progress, f"measuring on {place}, run {wanted.run_id}")
        log = self.folder.log(job, wanted.run_id)
        log.parent.mkdir(exist_ok=True)
        limit = time.time() + seconds(job.limit) if job.limit else self.until
        done = child.run(
            wanted,
            [*self.plan.words(job), "--fact", f"{NIGHT}={self.folder.path.name}"],
            claim.environment,
            log,
            lambda: self._ending.is_set() or time.time() > min(limit, self.until),
        )
        if done.ending is Ending.CUT and limit <= time.time() < self.until:
            done = Ended(Ending.LIMIT, done.sentence)
        progress.sentence, progress.state = done.sentence, done.ending
        if done.ending in _WORTH_ANOTHER_TRY:
            if progress.failed:
                progress.state = Doing.GIVEN_UP
            progress.failed = True
        elif done.ending is Ending.CUT:
            progress.state = Ending.LOST  # goes on if this night does
        self._tell(progress, f"{done.ending} on {place}: {done.sentence}")

    def _tell(self, progress: Progress, news: str) -> None:
        """Say what became of a job, how many are done, and when all should be, as far as that is known."""
        done = sum(one.done for one in self.progress)
        ours = [text for text in locks.held() if f"+{self.folder.path.name} since " in text]
        ends = [text.partition(locks.ENDS)[2] for text in ours if locks.ENDS in text]
        waits = any(not one.done for one in self.progress if one.state is not Doing.MEASURING)
        end = f", expected end {'after ' if waits else ''}{max(ends)}" if ends else ""
        self._say(f"[{done}/{len(self.progress)}{end}] {progress.job.name}: {news}")
