"""The end of a night: verdicts, guide, database, site, and one page about all of it.

Each is a command of evmperf in a process of its own: what one of them cannot do does not keep the others from
being done.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.benchmarks import wording
from evmperf.commands.app import sources
from evmperf.commands.night.child import measured_in
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
_OURS = "evmperf: "
"""What our sentences on standard error begin with."""
_CHECKED = (ExitStatus.OK, ExitStatus.FAILED, ExitStatus.NOTHING, ExitStatus.UNDECIDED)
"""How judging ends when it could judge: fine, worse, nothing comparable, not decided.
Its own mistakes end with another status.
"""


@dataclass(frozen=True)
class MeasuredBoard:
    """A run of a job: where its report is, and how much of it was measured."""

    job: str
    id: str
    href: str
    measured: int
    seconds: float


@dataclass
class Worse:
    """A figure that is worse, on one or more boards; `reason` is that of the first."""

    key: Key
    change: str
    reason: str
    runs: list[MeasuredBoard] = field(default_factory=list)


@dataclass
class NightBoard:
    """What the night's page says of one job."""

    progress: Progress
    release: str = ""
    runs: list[MeasuredBoard] = field(default_factory=list)
    verdicts: dict[tuple[str, Key], VerdictRecord] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """How many were measured, in all its runs."""
        return sum(run.measured for run in self.runs)

    @property
    def minutes(self) -> str:
        """How long its sessions took."""
        return f"{sum(run.seconds for run in self.runs) / 60:.0f}" if self.runs else ""

    @property
    def judged(self) -> str:
        """How many of which verdict, the worst first."""
        counts = Counter(verdict.verdict for verdict in self.verdicts.values())
        return ", ".join(f"{counts[o]} {o}" for o in Outcome if counts[o]) or "none"

    @property
    def worse(self) -> list[tuple[str, VerdictRecord]]:
        """What is worse, with the run that it is of."""
        return [(run, v) for (run, _), v in self.verdicts.items() if v.verdict == Outcome.WORSE]

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
        return sum(bool(board.cases and not board.verdicts) for board in self.boards)

    @property
    def worse(self) -> list[Worse]:
        """What is worse, a line a figure: on several boards it is the software's doing."""
        lines: dict[Key, Worse] = {}
        for board in self.boards:
            by_id = {run.id: run for run in board.runs}
            for run, verdict in board.worse:
                change = "" if verdict.change is None else percent(verdict.change)
                line = lines.setdefault(verdict.key, Worse(verdict.key, change, verdict.reason))
                line.runs.append(by_id[run])
        return sorted(lines.values(), key=lambda line: -len(line.runs))

    @property
    def status(self) -> ExitStatus:
        """The night's exit status; LAB_BROKEN when a board was not measured for the lab's sake."""
        states = {board.progress.state for board in self.boards}
        if "wrong" in states:
            return ExitStatus.USAGE
        if states - {"measured", "failed"}:
            return ExitStatus.LAB_BROKEN
        worse = any(board.worse for board in self.boards)
        worse |= any(record.reached == GoalWord.MISSED for _, record in self.goals)
        if "failed" in states or self.failed or worse or self.unjudged:
            return ExitStatus.FAILED
        outcomes = {v.verdict for board in self.boards for v in board.verdicts.values()}
        if Outcome.UNKNOWN in outcomes and not outcomes & {Outcome.SAME, Outcome.BETTER}:
            return ExitStatus.UNDECIDED
        return ExitStatus.OK

    @property
    def goals(self) -> list[tuple[str, VerdictRecord]]:
        """Goals that are missed or cannot be told, with the job."""
        verdicts = [(b.progress.job.name, v) for b in self.boards for v in b.verdicts.values() if v.goal]
        return [(job, v) for job, v in verdicts if v.reached != GoalWord.MET]

    @property
    def state(self) -> str:
        """`unsure` where nothing is worse, but verdicts could not be told."""
        if self.status not in (ExitStatus.OK, ExitStatus.UNDECIDED):
            return "bad"
        unknown = any(v.verdict == Outcome.UNKNOWN for board in self.boards for v in board.verdicts.values())
        return "unsure" if unknown else "good"

    @property
    def sign(self) -> str:
        """What stands before the night's sentence."""
        return SIGNS[self.state]


class Commands:
    """Runs commands; what one could not do, and what it complained of, is the closing's to say."""

    def __init__(self, closing: Closing, log: Path) -> None:
        self._closing, self._log = closing, log
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = threading.Event()

    def run(
        self,
        what: str,
        words: Sequence[str],
        fine: Sequence[int] = (ExitStatus.OK,),
        *,
        limit_s: float = _COMMAND_S,
        place: str = "",
    ) -> None:
        """Run a command, on that Labgrid place if any; `fine` are its statuses when it could do its work."""
        environment = {**os.environ, **({"LG_PLACE": place} if place else {})}
        with self._log.open("a", encoding="utf-8") as log:
            log.write(concealed(f"evmperf {' '.join(words)}\n"))
            log.flush()
            process = subprocess.Popen(
                [sys.executable, "-m", "evmperf", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
                start_new_session=True,
            )
            self._running.add(process)
            if self._ended.is_set():
                process.terminate()
            try:
                _, complaints = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    _, complaints = process.communicate(timeout=_GRACE_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    _, complaints = process.communicate()
            except BaseException:
                process.terminate()  # it may have a board, which it switches off
                process.wait()
                raise
            finally:
                self._running.discard(process)
            log.write(concealed(complaints))
        # Not of a library, and no traceback: those are in the log.
        ours = [line.removeprefix(_OURS) for line in complaints.splitlines() if line.startswith(_OURS)]
        if process.returncode in fine:
            self._closing.remarks += ours
        else:
            ours = ours or [f"ended with status {process.returncode}"]
            self._closing.failed += [(what, f"{line}; see {self._log}") for line in ours]

    def end(self) -> None:
        """End what runs, and what begins later at once; for another thread."""
        self._ended.set()
        for process in list(self._running):
            process.send_signal(signal.SIGTERM)


def close(night: NightConductor) -> Closing:
    """Judge what was measured, write guide, site and page, push; returns what to say of it."""
    plan, folder = night.plan, night.folder.path
    results, source = f"--results={night.results}", f"--from={plan.history}"
    closing = Closing([NightBoard(progress) for progress in night.progress])
    commands = Commands(closing, folder / LOG)
    runs = [run for progress in night.progress for run in progress.runs]
    measured = [run for run in runs if measured_in(night.results / run)]
    check = [
        "check",
        results,
        source,
        f"--against={plan.against}",
        *["--no-one-night"] * (not plan.one_night),
    ]
    if measured:
        commands.run("verdicts", [*check, *measured], fine=_CHECKED)
    for board in closing.boards:
        _describe(board, night.results)
    if plan.confirm:
        _confirm(closing, night, commands, check)
    unmeasured = [r.id for b in closing.boards for r in b.runs if r.id not in measured]
    if unmeasured and sources.has_history():
        # Judging keeps what it judges. The others tell of boots and of the lab.
        sources.keep([night.results / run for run in unmeasured], print)
    if plan.guide and any(board.runs for board in closing.boards):
        words = [f"--release={plan.release or 'newest'}", f"--output={folder / 'guide.rst'}"]
        commands.run("guide", ["guide", f"--from={night.results}", *words])
    if plan.push:
        commands.run("database", ["push", results])
    if plan.site and measured:
        commands.run("site", ["site", results, source, f"--output={night.results / 'site'}"])
    links = {"guide": "guide.rst", "trends": "../site/index.html"}
    values = {
        "name": folder.name,
        "began": night.folder.began,
        "ended": time.time(),
        "closing": closing,
        "sentence": sentence(closing),
        "links": [(name, file) for name, file in links.items() if (folder / file).exists()],
    }
    for page in ("night.html", PAGE):
        (folder / page).write_text(render(f"{page}.j2", **values))
    return closing


def sentence(closing: Closing) -> str:
    """How the night went, in one sentence."""
    states = Counter[str](board.progress.state for board in closing.boards)
    whole = len(closing.boards)
    text = f"{states['measured']} of {whole} {'board' if whole == 1 else 'boards'} measured"
    others = [f"{n} {state}" for state, n in sorted(states.items()) if state != "measured"]
    worse = len(closing.worse)
    others += [f"{worse} {'figure is' if worse == 1 else 'figures are'} worse"] if worse else []
    missed = [record.owner for _, record in closing.goals if record.reached == GoalWord.MISSED]
    owners = ", ".join(dict.fromkeys(missed))
    others += [f"{len(missed)} goal{'s' * (len(missed) != 1)} missed (owner: {owners})"] if missed else []
    others += [f"{closing.unjudged} without verdicts"] if closing.unjudged else []
    return ", ".join([text, *others]) + "."


def render(template: str, **values: object) -> str:
    """A page of the night; raises jinja2's errors for a template that is wrong."""
    look.environment().filters |= {"clock": lambda seconds: clock(seconds) if seconds else ""}
    return look.render(
        f"commands/night/{template}", look=look.inline(plots=False), figure=wording.figure, **values
    )


def _confirm(closing: Closing, night: NightConductor, commands: Commands, check: Sequence[str]) -> None:
    """Check again what is worse, on all boards at the same time, as far as the night has time."""
    budget = int(min(seconds(night.plan.confirm), night.until - time.time()))
    worse = [board for board in closing.boards if board.worse]
    if not worse or budget < 1:
        return

    def again(board: NightBoard) -> None:
        runs = list(dict.fromkeys(run for run, _ in board.worse))
        file = board_file(board.progress.job).absolute()
        words = [*check, *runs, f"--confirm={budget}s", f"--wait={budget}s", f"--board={file}"]
        limit_s = _COMMAND_S + 2 * budget * len(runs)
        commands.run("checking again", words, fine=_CHECKED, limit_s=limit_s, place=board.progress.place)

    with ThreadPoolExecutor(len(worse)) as pool:
        try:
            list(pool.map(again, worse))
        except KeyboardInterrupt:
            commands.end()
            raise
    for board in worse:
        board.runs.clear()
        _describe(board, night.results)


def _describe(board: NightBoard, results: Path) -> None:
    """Read what the runs of a job hold."""
    for name in board.progress.runs:
        folder = results / name
        try:
            run = spool.read_run(folder)
        except UsageError:
            continue
        board.release = run.release or board.release
        took_s = max(run.ended_ns - run.started_ns, 0) / 1e9
        # A session that was killed has no report.
        page = f"../{name}/{'report.html' if (folder / 'report.html').exists() else ''}"
        count = len(measured_in(folder))
        board.runs.append(MeasuredBoard(board.progress.job.name, name, page, count, took_s))
        board.verdicts |= {(name, key): entry for key, entry in spool.read_verdicts(folder).items()}
