"""A night over LAVA: LAVA's scheduler finds the boards, and each job of the plan is a LAVA job."""

import contextlib
import time
from collections.abc import Callable

from msgspec.structs import replace

from evmperf.commands.app import lavajobs
from evmperf.commands.lava.render import JobRequest
from evmperf.commands.lava.selection import JobKind, select
from evmperf.commands.lava.server import LavaJob, LavaServer, connect
from evmperf.commands.night.child import EndedRun, outcome
from evmperf.commands.night.conductor import Doing, NightConductor, Progress
from evmperf.commands.night.journal import read
from evmperf.commands.night.plan import Job, NightPlan, board_file
from evmperf.measure import boardfile
from evmperf.model.ended import Ending
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.run import NIGHT

_AWAY_S = 15.0
"""Pause before a server that did not answer is asked again, in seconds."""
_OWN_RESULTS = "host"
"""The kind of job whose session keeps its results on the lab's Labgrid host."""


def for_lava(given: NightPlan, tell: Callable[[str], None]) -> NightPlan:
    """The plan with a job for each kind of LAVA job that fits; says what fits none."""
    jobs: list[Job] = []
    for job in given.boards:
        board = boardfile.named(job.board)
        profile = job.profile or board.options.board.profile
        kinds = [JobKind(job.lava)] if job.lava else [JobKind.NATIVE, JobKind.BOOT]
        refused: list[set[str]] = []
        for kind in kinds:
            try:
                chosen = select(board, kind, profile, job.benchmarks)
            except UsageError as error:
                reason = str(error)
                continue
            refused.append({line.partition(":")[0] for line in chosen.refused})
            jobs.append(replace(job, name=f"{job.name}-{kind}", lava=kind.value))
        if not refused:
            raise UsageError(f"{job.name}: {reason}")
        if job.benchmarks and (none := sorted(set.intersection(*refused))):
            tell(f"{job.name}: not over LAVA: {', '.join(none)} (`evmperf lava render` says why)")
    return replace(given, boards=jobs)


class LavaNight(NightConductor):
    """A night whose jobs are LAVA's."""

    @property
    def coordinators(self) -> set[str]:
        """None: LAVA has boards of its own."""
        return set()

    def _try(self, progress: Progress, stack: contextlib.ExitStack) -> None:
        """Submit a job unless it has been submitted, follow it to its end, and read it."""
        self._share(progress, stack)
        if self.ending.is_set():
            return
        number = 0
        for event in read(self.journal.folder):
            if event.get("job") == progress.job.name and "lava" in event:
                # A job that was submitted and has not been read.
                number = event["lava"] if event["event"] == "submitted" else 0
        server = connect(self.identity)
        number = number or self._submit(progress, server)
        if done := self._follow(progress, number, server):
            progress.runs += [done.run] if done.run else []
            self._ended(progress, done.run, done, lava=number)

    def _submit(self, progress: Progress, server: LavaServer) -> int:
        job, plan = progress.job, self.plan
        request = JobRequest(JobKind(job.lava), job.benchmarks, job.release or plan.release, priority="low")
        board, images = str(board_file(job)), [job.image] if job.image else []
        text = lavajobs.definition(board, request, images, job.profile)
        ((number, progress.page), *_) = lavajobs.submit(server, text)
        self.journal.note("submitted", job=job.name, lava=number, page=progress.page)
        self.tell(f"{job.name}: submitted as {progress.page}")
        return number

    def _follow(self, progress: Progress, number: int, server: LavaServer) -> EndedRun | None:
        """How a job ended; None when that is not known yet."""

        def hear(job: LavaJob) -> None:
            progress.state = Doing.MEASURING if job.state == "Running" else Doing.WAITING
            progress.place = job.device or progress.place
            progress.sentence = f"LAVA's job {number} is {job.state}"

        board = str(board_file(progress.job))
        left_s = max(self.until - time.time(), 0.0)
        try:
            judged = lavajobs.judge(server, server.wait(number, left_s, hear, self.ending), board)
        except EvmperfError as error:
            return self._unknown(progress, number, server, error)
        sentence = judged.lines[-1]
        if progress.job.lava == _OWN_RESULTS:
            endings = {ExitStatus.OK: Ending.MEASURED, ExitStatus.FAILED: Ending.FAILED}
            return EndedRun(endings.get(judged.status, Ending.LAB), sentence, "")
        why = "it keeps its results itself"
        try:
            kind, facts = self.plan.run_kind, {NIGHT: self.journal.id}
            _, run, _ = lavajobs.read(
                lambda: server, str(number), self.results, board=board, kind=kind, facts=facts
            )
            if run:
                # LAVA may miss the report of a case that its log has whole.
                seen = judged.status in (ExitStatus.OK, ExitStatus.FAILED)
                status = max(ExitStatus.OK if seen else judged.status, run.exit_status or 0)
                return outcome(self.results / run.id, status, sentence, cut=False)
        except EvmperfError as error:
            why = str(error)
        if judged.status == ExitStatus.OK:
            raise LabError(f"the results of LAVA's job {number} cannot be read: {why}")
        # There is no log, or it ends before the first measurement.
        lab = judged.status == ExitStatus.LAB_BROKEN
        return EndedRun(Ending.LAB if lab else Ending.BOARD, sentence, "")

    def _unknown(
        self, progress: Progress, number: int, server: LavaServer, error: EvmperfError
    ) -> EndedRun | None:
        """The outcome when the wait failed: the night is over, or the server does not answer."""
        progress.sentence = str(error)
        if time.time() >= self.until:
            with contextlib.suppress(EvmperfError):
                server.cancel(number)
            return EndedRun(Ending.CUT, f"the night had to end before LAVA's job {number}", "")
        if isinstance(error, UsageError):
            return EndedRun(Ending.WRONG, progress.sentence, "")
        self.ending.wait(_AWAY_S)
        return None
