"""The end of a night: verdicts, guide, database, site, and one page about all of it.

Each is the command that a person would call, in a process of its own: what one of them cannot do
does not keep the others from being done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.exits import SIGNS, ExitStatus
from evmperf.model.figures import Key
from evmperf.model.records import VerdictRecord
from evmperf.model.stats import percent
from evmperf.model.verdict import Outcome
from evmperf.night.child import measured_in
from evmperf.night.conductor import Night, Progress
from evmperf.night.page import render
from evmperf.night.plan import board_file
from evmperf.runs import spool

_COMMAND_S = 1800.0
_CHECKED = (ExitStatus.OK, ExitStatus.FAILED, ExitStatus.NOTHING, ExitStatus.UNDECIDED)
"""How `evmperf check` ends when it could judge: fine, worse, nothing comparable, not decided.
Its own mistakes end with another status.
"""


@dataclass(frozen=True)
class Measured:
    """A run of a job: where its report is, and how much of it was measured."""

    job: str
    id: str
    href: str
    measured: int
    seconds: float


@dataclass
class Worse:
    """A figure that is worse, on one or more boards; `reason` is that of the first."""

    benchmark: str
    case: str
    metric: str
    change: str
    reason: str
    runs: list[Measured] = field(default_factory=list)


@dataclass
class Board:
    """What the night's page says of one job."""

    progress: Progress
    release: str = ""
    runs: list[Measured] = field(default_factory=list)
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
        said = [] if self.progress.state == "measured" else [self.progress.sentence]
        return [*dict.fromkeys([*self.progress.failures, *said])]


@dataclass
class Closing:
    """What the end of a night came to; `commands` are those that failed, with what they said, and
    `remarks` what the others complained of.
    """

    boards: list[Board]
    commands: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    calls: list[subprocess.Popen[str]] = field(default_factory=list)
    cut: bool = False

    @property
    def unjudged(self) -> int:
        """Boards of which something was measured, and nothing judged."""
        return sum(bool(board.cases and not board.verdicts) for board in self.boards)

    @property
    def worse(self) -> list[Worse]:
        """What is worse, a line a figure: on several boards it is the software's doing."""
        found: dict[Key, Worse] = {}
        for board in self.boards:
            by_id = {run.id: run for run in board.runs}
            for run, verdict in board.worse:
                change = "" if verdict.change is None else percent(verdict.change)
                line = found.setdefault(
                    verdict.key, Worse(*verdict.key, change=change, reason=verdict.reason)
                )
                line.runs.append(by_id[run])
        return sorted(found.values(), key=lambda line: -len(line.runs))

    @property
    def status(self) -> ExitStatus:
        """The night's exit status; LAB_BROKEN when a board was not measured for the lab's sake."""
        states = {board.progress.state for board in self.boards}
        if "wrong" in states:
            return ExitStatus.USAGE
        if states - {"measured", "failed"}:
            return ExitStatus.LAB_BROKEN
        worse = any(board.worse for board in self.boards)
        if "failed" in states or self.commands or worse or self.unjudged:
            return ExitStatus.FAILED
        told = {v.verdict for board in self.boards for v in board.verdicts.values()}
        if Outcome.UNKNOWN in told and not told & {Outcome.SAME, Outcome.BETTER}:
            return ExitStatus.UNDECIDED
        return ExitStatus.OK

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


def close(night: Night, began: float) -> Closing:
    """Judge what was measured, write guide, site and page, push; returns what to say of it."""
    plan, folder = night.plan, night.journal.folder
    closing = Closing([Board(progress) for progress in night.progress])
    runs = [run for board in closing.boards for run in board.progress.runs]
    measured = [run for run in runs if measured_in(night.results / run)]
    where = ["--results", str(night.results), *(["--from", plan.history] if plan.history else [])]
    words = [*where, "--against", plan.against]
    if measured:
        _call(closing, ["check", *measured, *words], fine=_CHECKED)
    for board in closing.boards:
        _describe(board, night.results)
    if plan.confirm:
        _confirm(closing, night, words)
    if unmeasured := [run.id for board in closing.boards for run in board.runs if run.id not in measured]:
        # `check` keeps what it judges. The others tell of boots and of the lab.
        _call(closing, ["store", *unmeasured, "--results", str(night.results)])
    if plan.guide and any(board.runs for board in closing.boards):
        release = plan.release or "newest"
        words = ["guide", "--release", release, "--from", str(night.results)]
        _call(closing, [*words, "-o", str(folder / "guide.rst")])
    if plan.push:
        _call(closing, ["push", "--results", str(night.results)])
    if plan.site and measured:
        _call(closing, ["site", "-o", str(night.results / "site"), *where])
    links = {
        "journal": "journal.jsonl",
        "status": "status.html",
        "guide": "guide.rst",
        "trends": "../site/index.html",
    }
    values = {
        "night": night,
        "began": began,
        "ended": time.time(),
        "closing": closing,
        "sentence": sentence(closing),
        "links": [(name, file) for name, file in links.items() if (folder / file).exists()],
    }
    for suffix in ("html", "md"):
        (folder / f"night.{suffix}").write_text(render(f"night.{suffix}.j2", **values))
    return closing


def sentence(closing: Closing) -> str:
    """How the night went, in one sentence."""
    states = Counter[str](board.progress.state for board in closing.boards)
    whole = len(closing.boards)
    text = f"{states['measured']} of {whole} {'board' if whole == 1 else 'boards'} measured"
    others = [f"{n} {state}" for state, n in sorted(states.items()) if state != "measured"]
    worse = len(closing.worse)
    others += [f"{worse} {'figure is' if worse == 1 else 'figures are'} worse"] if worse else []
    others += [f"{closing.unjudged} without verdicts"] if closing.unjudged else []
    return ", ".join([text, *others]) + "."


def _confirm(closing: Closing, night: Night, words: Sequence[str]) -> None:
    """Check again what is worse, on all boards at the same time, as far as the night has time."""
    budget = min(seconds(night.plan.confirm), night.until - time.time())
    # LAVA's devices are not ours to hold for that.
    worse = [board for board in closing.boards if board.worse and not board.progress.job.lava]
    if not worse or budget < 1:
        return

    def again(board: Board) -> None:
        file = board_file(board.progress.job).absolute()
        here = {"LG_PLACE": board.progress.place}
        for run in dict.fromkeys(run for run, _ in board.worse):
            more = ["--confirm", f"{budget:.0f}s", "--wait", f"{budget:.0f}s", "--board", str(file)]
            _call(closing, ["check", run, *words, *more], _CHECKED, 2 * budget, here)

    with ThreadPoolExecutor(len(worse)) as pool:
        try:
            list(pool.map(again, worse))
        except KeyboardInterrupt:
            closing.cut = True
            for call in closing.calls:
                call.terminate()  # those that have ended hear nothing
            raise
    for board in worse:
        board.runs.clear()
        _describe(board, night.results)


def _describe(board: Board, results: Path) -> None:
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
        page = "report.html" if (folder / "report.html").exists() else ""
        board.runs.append(
            Measured(board.progress.job.name, name, f"../{name}/{page}", len(measured_in(folder)), took_s)
        )
        for entry in spool.read_records(folder):
            if isinstance(entry, VerdictRecord):
                board.verdicts[name, entry.key] = entry


def _call(
    closing: Closing,
    words: Sequence[str],
    fine: Sequence[int] = (0,),
    longer_s: float = 0.0,
    variables: Mapping[str, str] | None = None,
) -> None:
    if closing.cut:
        return
    command = [sys.executable, "-m", "evmperf.cli.main", *words]
    try:
        done = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(variables or {})},
        )
        closing.calls.append(done)
        try:
            out, err = done.communicate(timeout=_COMMAND_S + longer_s)
        except BaseException:
            done.terminate()  # it may have a board, which it switches off
            done.communicate()
            raise
    except (OSError, subprocess.TimeoutExpired) as error:
        closing.commands.append((f"evmperf {words[0]}", str(error)))
        return
    if done.returncode not in fine:
        said = (err.strip() or out.strip()).splitlines() or ["no reason given"]
        closing.commands.append((f"evmperf {words[0]}", said[-1].removeprefix("evmperf: ")))
        return
    said = [line for line in err.splitlines() if line.startswith("evmperf: ")]
    closing.remarks += [line.removeprefix("evmperf: ") for line in said]
