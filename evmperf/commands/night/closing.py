"""The end of a night: verdicts, guide, database and site.

Each is a command of evmperf in a process of its own: what one of them cannot do does not keep the others from
being done.
"""

import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evmperf.commands.night.child import start
from evmperf.commands.night.conductor import NightConductor, Progress
from evmperf.commands.night.folder import OUTCOME
from evmperf.commands.night.plan import board_file
from evmperf.model.concealing import concealed
from evmperf.model.ended import Ending
from evmperf.model.exits import ExitStatus
from evmperf.model.outlets import line
from evmperf.model.units import counted, seconds

LOG = "closing.log"
"""In the night's folder: the commands, and what they printed."""
_COMMAND_S = 1800.0
_GRACE_S = 60.0
"""How long a command that was told to end may take for it."""
_JUDGED = (ExitStatus.FAILED, ExitStatus.UNDECIDED, ExitStatus.OK, ExitStatus.NOTHING)
"""How judging ends when it could judge, the gravest first: worse, not decided, fine, nothing comparable.
Its own mistakes end with another status.
"""


@dataclass
class Closing:
    """What a night came to: its jobs, how judging ended, and what `failed` after measuring, with why."""

    jobs: Sequence[Progress]
    judged: ExitStatus = ExitStatus.NOTHING
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def status(self) -> ExitStatus:
        """The night's exit status; LAB_BROKEN when a board was not measured for the lab's sake."""
        states = {job.state for job in self.jobs}
        if Ending.WRONG in states:
            return ExitStatus.USAGE
        if states - {Ending.MEASURED, Ending.FAILED}:
            return ExitStatus.LAB_BROKEN
        if Ending.FAILED in states or self.failed:
            return ExitStatus.FAILED
        return ExitStatus.OK if self.judged is ExitStatus.NOTHING else self.judged

    @property
    def lines(self) -> list[str]:
        """Why boards were not measured, what could not be done, and at last how the night went."""
        states = Counter[str](job.state for job in self.jobs)
        parts = [f"{states['measured']} of {counted(len(self.jobs), 'board')} measured"]
        parts += [f"{n} {state}" for state, n in sorted(states.items()) if state != "measured"]
        parts += ["figures are worse or goals missed"] * (self.judged is ExitStatus.FAILED)
        unmeasured = [job for job in self.jobs if job.state != "measured"]
        said = [f"{job.job.name}: {job.state}: {job.sentence}" for job in unmeasured]
        said += [f"{what}: {why}" for what, why in self.failed]
        return [*map(line, said), f"{', '.join(parts)}."]


class ClosingCommand(NamedTuple):
    """A command of evmperf, on a Labgrid place if any; `fine` are its statuses when it could do its work."""

    what: str
    words: Sequence[str]
    fine: Sequence[int] = (ExitStatus.OK,)
    limit_s: float = _COMMAND_S
    place: str = ""


def run(closing: Closing, log: Path, *commands: ClosingCommand) -> list[int]:
    """Run commands side by side and print what they say; returns their exit statuses. The closing has what
    one could not do.
    """
    with contextlib.ExitStack() as stack:
        started = []
        output = stack.enter_context(log.open("a", encoding="utf-8"))
        for one in commands:
            limit = ("timeout", "--verbose", f"--kill-after={_GRACE_S}", f"{one.limit_s}")
            said = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            words = [*limit, sys.executable, "-m", "evmperf", *one.words]
            process = start(words, {"LG_PLACE": one.place} if one.place else {}, said)
            stack.callback(process.wait)
            stack.callback(process.terminate)  # it may have a board, which it switches off
            started.append((one, process, said))
        for one, process, said in started:
            status = process.wait()
            said.seek(0)
            text = concealed(said.read())
            output.write(concealed(f"evmperf {' '.join(one.words)}\n") + text)
            print(text, end="", flush=True)
            if status not in one.fine:
                closing.failed += [(one.what, f"ended with status {status}; see {log}")]
        return [process.returncode for _, process, _ in started]


def close(night: NightConductor) -> Closing:
    """Judge what was measured, write guide and site, push; returns what to say of it."""
    plan, folder, results = night.plan, night.folder.path, f"--results={night.results}"
    source = f"--from={plan.history}"
    closing, log = Closing(night.progress), folder / LOG
    runs = [run for job in night.progress for run in job.runs]
    reached = [run for run in runs if (night.results / run / "run.json").is_file()]
    one_night = ["--no-one-night"] * (not plan.one_night)
    check = ("check", results, source, f"--against={plan.against}", *one_night)
    judging = [ClosingCommand("verdicts", [*check, *reached], _JUDGED)] if reached else []
    budget_s = int(min(seconds(plan.confirm), night.until - time.time()))
    if budget_s > 0:
        owned = [(job, [run for run in job.runs if run in reached]) for job in night.progress]
        judging = [_confirming(job, [*check, *own], len(own), budget_s) for job, own in owned if own]
    statuses = run(closing, log, *judging)
    closing.judged = next((status for status in _JUDGED if status in statuses), closing.judged)
    if plan.guide and reached:
        words = [f"--release={plan.release or 'newest'}", f"--output={folder / 'guide.rst'}"]
        run(closing, log, ClosingCommand("guide", ["guide", f"--from={night.results}", *words]))
    if plan.push:
        run(closing, log, ClosingCommand("database", ["push", results]))
    if plan.site and reached:
        words = ["site", results, source, f"--output={night.results / 'site'}"]
        run(closing, log, ClosingCommand("site", words))
    (folder / OUTCOME).write_text("".join(f"{said}\n" for said in closing.lines), encoding="utf-8")
    return closing


def _confirming(job: Progress, check: Sequence[str], count: int, budget_s: int) -> ClosingCommand:
    """Judge so many runs of a board, and measure again what is worse, within that time a run."""
    words = [f"--confirm={budget_s}s", f"--wait={budget_s}s", f"--board={board_file(job.job).absolute()}"]
    limit_s = _COMMAND_S + 2 * budget_s * count
    return ClosingCommand("verdicts", [*check, *words], _JUDGED, limit_s, job.place)
