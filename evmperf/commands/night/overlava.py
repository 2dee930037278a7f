"""A night over LAVA: LAVA's scheduler finds the boards, and each job of the plan is a LAVA job.

A child process submits, follows, reads and cancels a LAVA job.
"""

import contextlib
import time
from pathlib import Path

from evmperf.commands.app.calls import Calls
from evmperf.commands.app.requests import (
    Cancel,
    Follow,
    Import,
    Imported,
    JobState,
    Judged,
    Submit,
    Submitted,
)
from evmperf.commands.night.child import EndedRun, outcome
from evmperf.commands.night.conductor import Doing, NightConductor, Progress
from evmperf.commands.night.journal import read
from evmperf.commands.night.plan import board_file
from evmperf.model.ended import Ending
from evmperf.model.errors import Kind, LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import Failed, Reply
from evmperf.model.run import NIGHT

_AWAY_S = 15.0
"""Pause before a server that did not answer is asked again, in seconds."""
_OWN_RESULTS = "host"
"""The kind of job whose session keeps its results on the lab's Labgrid host."""


class LavaNight(NightConductor):
    """A night whose jobs are LAVA's."""

    @property
    def coordinators(self) -> set[str]:
        """None: LAVA has boards of its own."""
        return set()

    def _try(self, progress: Progress, stack: contextlib.ExitStack) -> None:
        """Submit a job unless it has been submitted, follow it to its end, and read it."""
        self._share(progress, stack)
        with self._ended_with_us(Calls(self.journal.folder / f"{progress.job.name}.log")) as calls:
            if self.ending.is_set():
                return
            number = 0
            for event in read(self.journal.folder):
                if event.get("job") == progress.job.name and "lava" in event:
                    # A job that was submitted and has not been read.
                    number = event["lava"] if event["event"] == "submitted" else 0
            number = number or self._submit(progress, calls)
            if done := self._follow(progress, number, calls):
                progress.runs += [done.run] if done.run else []
                self._ended(progress, done.run, done, lava=number)

    def _submit(self, progress: Progress, calls: Calls) -> int:
        job, plan = progress.job, self.plan
        request = Submit(
            board=str(board_file(job).absolute()),
            keyword=job.benchmarks,
            kind=job.lava,
            profile=job.profile,
            release=job.release or plan.release,
            images=(job.image,) if job.image else (),
            priority="low",
            identity=self.identity,
        )
        reply = calls.ask(request)
        if isinstance(reply, Failed):
            raise (UsageError if reply.kind is Kind.USAGE else LabError)(reply.sentence)
        assert isinstance(reply, Submitted)
        ((number, progress.page), *_) = reply.jobs
        self.journal.note("submitted", job=job.name, lava=number, page=progress.page)
        self.tell(f"{job.name}: submitted as {progress.page}")
        return number

    def _follow(self, progress: Progress, number: int, calls: Calls) -> EndedRun | None:
        """How a job ended; None when that is not known yet."""

        def hear(news: Reply) -> None:
            if isinstance(news, JobState):
                progress.state = Doing.MEASURING if news.state == "Running" else Doing.WAITING
                progress.place = news.device or progress.place
                progress.sentence = f"LAVA's job {number} is {news.state}"

        board = str(board_file(progress.job).absolute())
        left_s = max(self.until - time.time(), 0.0)
        judged = calls.ask(Follow(job=number, board=board, identity=self.identity, timeout_s=left_s), hear)
        if isinstance(judged, Failed):
            return self._unknown(progress, number, calls, judged)
        assert isinstance(judged, Judged)
        sentence = judged.lines[-1]
        if progress.job.lava == _OWN_RESULTS:
            endings = {ExitStatus.OK: Ending.MEASURED, ExitStatus.FAILED: Ending.FAILED}
            return EndedRun(endings.get(judged.status, Ending.LAB), sentence, "")
        request = Import(
            job=str(number),
            results=str(self.results),
            board=board,
            identity=self.identity,
            run_kind=self.plan.run_kind,
            facts={NIGHT: self.journal.id},
        )
        imported = calls.ask(request, last=True)
        if isinstance(imported, Imported) and imported.folder:
            return outcome(Path(imported.folder), max(judged.status, imported.status), sentence, cut=False)
        if judged.status == ExitStatus.OK:
            why = imported.sentence if isinstance(imported, Failed) else "it keeps its results itself"
            raise LabError(f"the results of LAVA's job {number} cannot be read: {why}")
        # There is no log, or it ends before the first measurement.
        lab = judged.status == ExitStatus.LAB_BROKEN
        return EndedRun(Ending.LAB if lab else Ending.BOARD, sentence, "")

    def _unknown(self, progress: Progress, number: int, calls: Calls, failed: Failed) -> EndedRun | None:
        """The outcome when the wait failed: the night is over, or the server does not answer."""
        progress.sentence = failed.sentence
        if time.time() >= self.until:
            calls.ask(Cancel(job=number, identity=self.identity), last=True)
            return EndedRun(Ending.CUT, f"the night had to end before LAVA's job {number}", "")
        if failed.kind is Kind.USAGE:
            return EndedRun(Ending.WRONG, failed.sentence, "")
        self.ending.wait(_AWAY_S)
        return None
