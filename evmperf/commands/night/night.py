"""A night: boards measured by a plan, and judged at its end."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from evmperf.commands.lava.selection import JobKind, select
from evmperf.commands.night import closing, plan
from evmperf.commands.night.conductor import NightConductor
from evmperf.commands.night.journal import open_night, read
from evmperf.commands.night.overlava import LavaNight
from evmperf.commands.night.plan import Job, NightPlan
from evmperf.commands.night.status import StatusPage
from evmperf.measure import boardfile
from evmperf.measure.signals import listening
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus


def measure(
    file: Path, results: Path | None, say: Callable[[str], None], *, over: str, identity: str, new: bool
) -> tuple[ExitStatus, Sequence[str]]:
    """Measure the boards of a plan, over `labgrid` or `lava`, below `results` (None: the plan's); a night of
    this plan that was interrupted goes on, unless a `new` one is wanted. A signal interrupts it. Returns how
    it ended, and sentences on it. Raises UsageError for a wrong plan, LabError for the disk.
    """
    night_plan = plan.read(file)
    if over == "lava":
        night_plan = _for_lava(night_plan, say)
    results = Path(results or night_plan.results).absolute()
    plan_text = f"over {over}\n{file.read_text()}"
    journal = open_night(results, night_plan.name, plan_text, fresh=new)
    begun = next((e for e in read(journal.folder) if e["event"] == "begun"), None)
    began = begun["at"] if begun else time.time()
    until = begun["until"] if begun else plan.end_of(night_plan, began)
    if begun:
        say(f"going on with {journal.id}, which began at {time.ctime(began)}")
    else:
        journal.note("begun", plan=plan_text, until=until)
    say(f"status: {journal.folder / 'status.html'}")

    kind = LavaNight if over == "lava" else NightConductor
    night = kind(night_plan, results, journal, until, lambda line: None)
    night.identity = identity
    status = StatusPage(night, began)

    def tell(line: str) -> None:
        done = sum(progress.done for progress in night.progress)
        shown = ", ".join(filter(None, [f"{done}/{len(night.progress)}", status.expected_end()]))
        say(f"{time.strftime('%H:%M:%S')} [{shown}] {line}")

    night.tell = tell
    cut = []

    def stop(number: int, _: object) -> None:
        cut.append(number)
        night.end()

    try:
        with listening(stop):
            night.measure()
        if cut:
            sentence = f"interrupted: `evmperf night {file}` resumes it"
            return ExitStatus.INTERRUPTED, [sentence]
        ended = closing.close(night, began)
        sentence = closing.sentence(ended)
        journal.note("ended", status=ended.status, sentence=sentence)
    finally:
        status.close()
        journal.close()
    failed = (f"{what}: {reason}" for what, reason in ended.failed)
    last = f"{sentence} {journal.folder / 'night.html'}"
    return ended.status, [*failed, last]


def _for_lava(given: NightPlan, tell: Callable[[str], None]) -> NightPlan:
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
