"""The night: for each job a thread that waits for its board, measures, and tries once more."""

import contextlib
import enum
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from evmperf.boards import board as boards
from evmperf.commands.night.child import Child, EndedRun, measured_in, outcome
from evmperf.commands.night.folder import NightFolder
from evmperf.commands.night.plan import Job, NightPlan, board_file
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import clock
from evmperf.measure.runs import spool
from evmperf.model.ended import Ending
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.run import NIGHT
from evmperf.model.units import seconds

_PRIORITY = -1.0
"""A night waits behind people."""
_TRIES = 2
"""Sessions of a job that may fail by the lab's fault."""
_WORTH_ANOTHER_TRY = (Ending.LAB, Ending.BOARD)
_LOSSES = 3
"""Times that a job may lose its board to somebody."""
_LAB_S = 5.0
"""Pause before the coordinator is asked again, in seconds."""


class Doing(enum.StrEnum):
    """What happens to a job that has not ended; see `Ending` for how it ends."""

    WAITING = "waiting"
    MEASURING = "measuring"
    GIVEN_UP = "given up"
    """No board is left to try, or no time."""


_GOES_ON = (*(Doing.WAITING, Doing.MEASURING), *(Ending.LOST, Ending.LAB, Ending.BOARD))


@dataclass
class Progress:
    """The state of a job; `runs` are the runs that measured for it, oldest first."""

    job: Job
    state: Doing | Ending = Doing.WAITING
    place: str = ""
    sentence: str = ""
    runs: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    losses: int = 0

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
        self.progress = [Progress(job) for job in plan.boards]
        self.ending = threading.Event()
        self.tell = tell
        self._limits = {name: threading.Semaphore(n) for name, n in plan.limits.items()}
        self._at_once = threading.Semaphore(plan.at_once or len(plan.boards))
        self._children: set[Child] = set()
        self._recall()

    def measure(self) -> None:
        """Measure all jobs; returns when all are done or the night has to end."""
        threads = [threading.Thread(target=self._job, args=[p]) for p in self.progress if not p.done]
        for thread in threads:
            thread.start()
            self.ending.wait(seconds(self.plan.stagger))
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.2)
            if time.time() > self.until and not self.ending.is_set():
                self.end()

    def end(self) -> None:
        """End all sessions, which switch their boards off; a second call hurries them."""
        hurry = self.ending.is_set()
        self.ending.set()
        for child in list(self._children):
            child.cut(hurry=hurry)

    def _recall(self) -> None:
        """Restore the progress of an earlier part of this night from its runs."""
        for progress in self.progress:
            progress.runs = self.folder.runs(progress.job)
            for name in progress.runs:
                with contextlib.suppress(UsageError):  # it did not reach its board
                    run = spool.read_run(self.results / name)
                    progress.place = run.place
                    if run.ending and run.exit_status is not None:
                        cut = run.ending is Ending.CUT
                        self._conclude(progress, outcome(self.results / name, run.exit_status, "", cut=cut))
            if not progress.done:
                progress.state = Doing.WAITING

    def _job(self, progress: Progress) -> None:
        try:
            while not progress.done and not self.ending.is_set():
                with contextlib.ExitStack() as stack:
                    self._try(progress, stack)
        except EvmperfError as error:
            self._give_up(progress, str(error))
        if not progress.done:
            self._give_up(progress, progress.sentence or "the night had to end")

    def _share(self, progress: Progress, stack: contextlib.ExitStack) -> None:
        """Wait for a free place on the host and for the things that jobs share."""
        # All jobs use one order: no two jobs can wait for each other.
        shared = [self._limits[name] for name in sorted(set(progress.job.uses))]
        for limit in (self._at_once, *shared):
            stack.enter_context(limit)

    def _try(self, progress: Progress, stack: contextlib.ExitStack) -> None:
        """Find a board and measure on it once; `stack` holds the shared things."""
        try:
            claim = self._find(progress, stack)
        except LabError as error:
            # The coordinator does not answer; it may be restarting.
            progress.state, progress.sentence = Doing.WAITING, str(error)
            stack.close()
            self.ending.wait(_LAB_S)
            return
        try:
            place = progress.place = claim.board.place
            board = boards.load(board_file(progress.job))
            run = spool.new_run_id(board.name)
            progress.state, before = Doing.MEASURING, list(progress.runs)
            progress.runs.append(run)
            self.tell(f"{progress.job.name}: measuring on {place}, run {run}")
            done = self._session(progress, claim, run, before)
        finally:
            claim.release()
        self._conclude(progress, done)
        self.tell(f"{progress.job.name}: {done.ending} on {place}: {done.sentence}")

    def _session(self, progress: Progress, claim: Claim, run: str, but: list[str]) -> EndedRun:
        job = progress.job
        options = [*self.plan.words(job), "--fact", f"{NIGHT}={self.folder.path.name}"]
        limit = time.time() + seconds(job.limit) if job.limit else self.until
        measured_before = [case for name in but for case in measured_in(self.results / name)]
        log = self.folder.log(job, run)
        log.parent.mkdir(exist_ok=True)
        with self._ended_with_us(Child(board_file(job), self.results, log)) as child:
            done = child.run(claim, run, options, but=measured_before, deadline=min(limit, self.until))
        if done.ending is Ending.CUT and limit <= time.time() < self.until:
            return replace(done, ending=Ending.LIMIT)
        return done

    @contextlib.contextmanager
    def _ended_with_us(self, child: Child) -> Iterator[Child]:
        """A session, which is ended with the night."""
        self._children.add(child)
        try:
            if self.ending.is_set():
                child.cut()
            yield child
        finally:
            self._children.discard(child)

    def _conclude(self, progress: Progress, done: EndedRun) -> None:
        """Decide what the end of a session means for the job."""
        place, progress.sentence, progress.state = progress.place, done.sentence, done.ending
        if done.ending in _WORTH_ANOTHER_TRY:
            progress.failures.append(f"{place}: {done.sentence}")
            if len(progress.failures) >= _TRIES:
                progress.state = Doing.GIVEN_UP
        elif done.ending is Ending.LOST:
            progress.losses += 1
            if progress.losses >= _LOSSES:
                progress.state = Doing.GIVEN_UP
        elif done.ending is Ending.CUT:
            progress.state = Ending.LOST  # goes on if this night does

    def _give_up(self, progress: Progress, sentence: str) -> None:
        progress.state, progress.sentence = Doing.GIVEN_UP, sentence
        self.tell(f"{progress.job.name}: given up: {sentence}")

    # Which board

    def _find(self, progress: Progress, stack: contextlib.ExitStack) -> Claim:
        """Hold a board for a job, and the things that it shares with other jobs."""
        self._share(progress, stack)
        with contextlib.suppress(UsageError):
            return self._claim(progress, 0.0)
        # Somebody holds it, perhaps for hours: release the shared things meanwhile.
        stack.close()
        waiting = seconds(self.plan.wait) or self.until
        claim = self._claim(progress, max(min(waiting, self.until - time.time()), 0.0))
        self._share(progress, stack)
        return claim

    def _claim(self, progress: Progress, wait_s: float) -> Claim:
        """Hold a board for a job; raises UsageError when there is none for it."""
        wanted = self.plan.placement(progress.job)

        def tell(sentence: str) -> None:
            progress.state, progress.sentence = Doing.WAITING, sentence
            self.tell(f"{progress.job.name}: waiting: {sentence}")

        return Claim.take(
            wanted, self.folder.path.name, until=self.until, wait_s=wait_s, priority=_PRIORITY, tell=tell
        )

    # What a person reads

    def expected_end(self) -> str:
        """When all jobs should be measured, as the end of a sentence; "" while unknown."""
        held = {record.place: record for record in locks.held()}
        working = [p for p in self.progress if p.state is Doing.MEASURING]
        # Before its session begins, a board is held for the whole night.
        records = (held.get(progress.place) for progress in working)
        ends_s = [record.until for record in records if record and record.doing and record.until]
        if not ends_s:
            return ""
        waits = any(not p.done for p in self.progress if p.state is not Doing.MEASURING)
        return f"expected end {'after ' if waits else ''}{clock(max(ends_s))}"
