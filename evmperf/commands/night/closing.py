"""The end of a night: verdicts, guide, database, site, and one page about all of it.

Each is a command of evmperf in a process of its own: what one of them cannot do does not keep the others from
being done.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evmperf.benchmarks import wording
from evmperf.commands.app import sources
from evmperf.commands.night.child import WITH_US, measured_in
from evmperf.commands.night.conductor import NightConductor, Progress
from evmperf.commands.night.folder import PAGE
from evmperf.commands.night.plan import board_file
from evmperf.lab.keeping.wanted import clock
from evmperf.measure.runs import spool
from evmperf.model.concealing import concealed
from evmperf.model.errors import UsageError
from evmperf.model.exits import SIGNS, ExitStatus
from evmperf.model.figures import Key
from evmperf.model.records import VerdictRecord
from evmperf.model.stats import percent
from evmperf.model.units import seconds
from evmperf.model.verdict import GoalWord, Outcome
from evmperf.publish.pages import look

LOG = "closing.log"
"""In the night's folder: the commands, and what they printed."""
_COMMAND_S = 1800.0
_GRACE_S = 60.0
"""How long a command that was told to end may take for it."""
_LATE = (124, -signal.SIGKILL)
"""How coreutils' timeout ends when the command did not."""
_OURS = "evmperf: "
"""What our sentences on standard error begin with."""
_CHECKED = (ExitStatus.OK, ExitStatus.FAILED, ExitStatus.NOTHING, ExitStatus.UNDECIDED)
"""How judging ends when it could judge: fine, worse, nothing comparable, not decided.
Its own mistakes end with another status.
"""


class MeasuredBoard(NamedTuple):
    """A run of a job: where its report is, how much of it was measured, and the verdicts."""

    job: str
    id: str
    release: str
    href: str
    measured: int
    seconds: float
    verdicts: Mapping[Key, VerdictRecord]


class Worse(NamedTuple):
    """A figure that is worse, on one or more boards; `reason` is that of the first."""

    key: Key
    change: str
    reason: str
    runs: list[MeasuredBoard]


@dataclass
class NightBoard:
    """What the night's page says of one job: its runs that reached the board."""

    progress: Progress
    runs: list[MeasuredBoard] = field(default_factory=list)

    @classmethod
    def of(cls, progress: Progress, results: Path) -> "NightBoard":
        """Read what the runs of a job hold."""
        job, runs = progress.job.name, []
        for folder in (results / name for name in progress.runs):
            with contextlib.suppress(UsageError):
                run = spool.read_run(folder)
                # A session that was killed has no report.
                page = f"../{run.id}/{'report.html' if (folder / 'report.html').exists() else ''}"
                took_s = max(run.ended_ns - run.started_ns, 0) / 1e9
                counts = (len(measured_in(folder)), took_s, spool.read_verdicts(folder))
                runs.append(MeasuredBoard(job, run.id, run.release, page, *counts))
        return cls(progress, runs)

    @property
    def verdicts(self) -> list[VerdictRecord]:
        """Those of all its runs."""
        return [verdict for run in self.runs for verdict in run.verdicts.values()]

    @property
    def judged(self) -> str:
        """How many of which verdict, the worst first."""
        counts = Counter(verdict.verdict for verdict in self.verdicts)
        return ", ".join(f"{counts[o]} {o}" for o in Outcome if counts[o]) or "none"

    @property
    def worse(self) -> list[tuple[MeasuredBoard, VerdictRecord]]:
        """What is worse, with the run that it is of."""
        return [(r, v) for r in self.runs for v in r.verdicts.values() if v.verdict == Outcome.WORSE]

    @property
    def remarks(self) -> list[str]:
        """What there is to say of a job that did not go smoothly."""
        sentences = [] if self.progress.state == "measured" else [self.progress.sentence]
        return [*dict.fromkeys([*self.progress.failures, *sentences])]


@dataclass
class Closing:
    """What the end of a night came to; `failed` is what could not be done, with why, and `remarks`
    what the rest complained of.
    """

    boards: list[NightBoard]
    failed: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def unjudged(self) -> int:
        """Boards of which something was measured, and nothing judged."""
        return sum(any(r.measured for r in board.runs) and not board.verdicts for board in self.boards)

    @property
    def worse(self) -> list[Worse]:
        """What is worse, a line a figure: on several boards it is the software's doing."""
        lines: dict[Key, Worse] = {}
        for run, verdict in (one for board in self.boards for one in board.worse):
            change = "" if verdict.change is None else percent(verdict.change)
            line = lines.setdefault(verdict.key, Worse(verdict.key, change, verdict.reason, []))
            line.runs.append(run)
        return sorted(lines.values(), key=lambda line: -len(line.runs))

    @property
    def status(self) -> ExitStatus:
        """The night's exit status; LAB_BROKEN when a board was not measured for the lab's sake."""
        states = {board.progress.state for board in self.boards}
        if "wrong" in states:
            return ExitStatus.USAGE
        if states - {"measured", "failed"}:
            return ExitStatus.LAB_BROKEN
        worse = self.worse or any(record.reached == GoalWord.MISSED for _, record in self.goals)
        if "failed" in states or self.failed or worse or self.unjudged:
            return ExitStatus.FAILED
        outcomes = self._outcomes
        if Outcome.UNKNOWN in outcomes and not outcomes & {Outcome.SAME, Outcome.BETTER}:
            return ExitStatus.UNDECIDED
        return ExitStatus.OK

    @property
    def _outcomes(self) -> set[str]:
        return {verdict.verdict for board in self.boards for verdict in board.verdicts}

    @property
    def goals(self) -> list[tuple[str, VerdictRecord]]:
        """Goals that are missed or cannot be told, with the job."""
        verdicts = [(b.progress.job.name, v) for b in self.boards for v in b.verdicts if v.goal]
        return [(job, v) for job, v in verdicts if v.reached != GoalWord.MET]

    @property
    def state(self) -> str:
        """`unsure` where nothing is worse, but verdicts could not be told."""
        if self.status not in (ExitStatus.OK, ExitStatus.UNDECIDED):
            return "bad"
        return "unsure" if Outcome.UNKNOWN in self._outcomes else "good"

    @property
    def sentence(self) -> str:
        """How the night went."""
        states = Counter[str](board.progress.state for board in self.boards)
        whole, worse = len(self.boards), len(self.worse)
        parts = [f"{states['measured']} of {whole} {'board' if whole == 1 else 'boards'} measured"]
        parts += [f"{n} {state}" for state, n in sorted(states.items()) if state != "measured"]
        parts += [f"{worse} {'figure is' if worse == 1 else 'figures are'} worse"] if worse else []
        missed = [record.owner for _, record in self.goals if record.reached == GoalWord.MISSED]
        owners = ", ".join(dict.fromkeys(missed))
        parts += [f"{len(missed)} goal{'s' * (len(missed) != 1)} missed (owner: {owners})"] if missed else []
        parts += [f"{self.unjudged} without verdicts"] if self.unjudged else []
        return f"{', '.join(parts)}."


class ClosingCommand(NamedTuple):
    """A command of evmperf, on a Labgrid place if any; `fine` are its statuses when it could do its work."""

    what: str
    words: Sequence[str]
    fine: Sequence[int] = (ExitStatus.OK,)
    limit_s: float = _COMMAND_S
    place: str = ""


def run(closing: Closing, log: Path, *commands: ClosingCommand) -> None:
    """Run commands side by side; the closing has what one could not do, and what it complained of."""
    with contextlib.ExitStack() as stack:
        started = []
        output = stack.enter_context(log.open("a", encoding="utf-8"))
        for one in commands:
            output.write(concealed(f"evmperf {' '.join(one.words)}\n"))
            output.flush()
            limit = ("timeout", f"--kill-after={_GRACE_S}", f"{one.limit_s}")
            said = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            process = subprocess.Popen(
                [*WITH_US, *limit, sys.executable, "-m", "evmperf", *one.words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
                env={**os.environ, **({"LG_PLACE": one.place} if one.place else {})},
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)  # it may have a board, which it switches off
            started.append((one, process, said))
        for one, process, said in started:
            status = process.wait()
            said.seek(0)
            complaints = said.read()
            output.write(concealed(complaints))
            # Not of a library, and no traceback: those are in the log.
            ours = [line.removeprefix(_OURS) for line in complaints.splitlines() if line.startswith(_OURS)]
            if status in one.fine:
                closing.remarks += ours
            else:
                late = status in _LATE
                why = f"did not end within {one.limit_s:g} s" if late else f"ended with status {status}"
                closing.failed += [(one.what, f"{line}; see {log}") for line in ours or [why]]


def close(night: NightConductor) -> Closing:
    """Judge what was measured, write guide, site and page, push; returns what to say of it."""
    plan, folder, results = night.plan, night.folder.path, f"--results={night.results}"
    source = f"--from={plan.history}"
    closing, log = Closing([]), folder / LOG
    names = [run for progress in night.progress for run in progress.runs]
    measured = [name for name in names if measured_in(night.results / name)]
    one_night = ["--no-one-night"] * (not plan.one_night)
    check = ("check", results, source, f"--against={plan.against}", *one_night)
    if measured:
        run(closing, log, ClosingCommand("verdicts", [*check, *measured], _CHECKED))
    closing.boards = [NightBoard.of(progress, night.results) for progress in night.progress]
    budget_s = int(min(seconds(plan.confirm), night.until - time.time()))
    if budget_s > 0 and closing.worse:
        run(closing, log, *(_again(board, check, budget_s) for board in closing.boards if board.worse))
        closing.boards = [NightBoard.of(progress, night.results) for progress in night.progress]
    unmeasured = [r.id for b in closing.boards for r in b.runs if r.id not in measured]
    if unmeasured and sources.has_history():
        # Judging keeps what it judges. The others tell of boots and of the lab.
        sources.keep([night.results / name for name in unmeasured], print)
    if plan.guide and any(board.runs for board in closing.boards):
        words = [f"--release={plan.release or 'newest'}", f"--output={folder / 'guide.rst'}"]
        run(closing, log, ClosingCommand("guide", ["guide", f"--from={night.results}", *words]))
    if plan.push:
        run(closing, log, ClosingCommand("database", ["push", results]))
    if plan.site and measured:
        run(
            closing,
            log,
            ClosingCommand("site", ["site", results, source, f"--output={night.results / 'site'}"]),
        )
    links = {"guide": "guide.rst", "trends": "../site/index.html"}
    shown = [(name, file) for name, file in links.items() if (folder / file).exists()]
    (folder / PAGE).write_text(render(folder.name, closing, (night.folder.began, time.time()), shown))
    return closing


def render(
    name: str, closing: Closing, from_to: tuple[float, float], links: Sequence[tuple[str, str]] = ()
) -> str:
    """The page of a night that began and ended at these times (seconds since the epoch)."""
    return look.render(
        "commands/night/night.html.j2",
        look=look.inline(plots=False),
        figure=wording.figure,
        name=name,
        closing=closing,
        began=clock(from_to[0]),
        ended=clock(from_to[1]),
        signs=SIGNS,
        links=links,
    )


def _again(board: NightBoard, check: Sequence[str], budget_s: int) -> ClosingCommand:
    """Measure again, within that time a run, what is worse on a board."""
    runs = list(dict.fromkeys(run.id for run, _ in board.worse))
    file = board_file(board.progress.job).absolute()
    words = [*check, *runs, f"--confirm={budget_s}s", f"--wait={budget_s}s", f"--board={file}"]
    limit_s = _COMMAND_S + 2 * budget_s * len(runs)
    return ClosingCommand("checking again", words, _CHECKED, limit_s, board.progress.place)
