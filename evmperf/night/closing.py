"""The end of a night: verdicts, guide, database, and one page about all of it.

Each is the command that a person would call, in a process of its own: what one of them cannot do
does not keep the others from being done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.records import VerdictRecord
from evmperf.night.child import measured_in
from evmperf.night.conductor import Night, Progress
from evmperf.night.page import render
from evmperf.runs import spool

_COMMAND_S = 1800.0
_CHECKED = (ExitStatus.OK, ExitStatus.FAILED, ExitStatus.NOTHING)
"""How `evmperf check` ends when it could judge: fine, worse, nothing comparable."""


@dataclass
class Board:
    """What the night's page says of one job."""

    progress: Progress
    runs: list[dict[str, Any]] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    worse: list[str] = field(default_factory=list)


@dataclass
class Closing:
    """What the end of a night came to; `commands` are those that failed, with what they said."""

    boards: list[Board]
    commands: list[tuple[str, str]] = field(default_factory=list)

    @property
    def status(self) -> ExitStatus:
        """The night's exit status; LAB_BROKEN when a board was not measured for the lab's sake."""
        states = {board.progress.state for board in self.boards}
        if "wrong" in states:
            return ExitStatus.USAGE
        if states - {"measured", "failed"}:
            return ExitStatus.LAB_BROKEN
        if "failed" in states or self.commands or any(b.worse for b in self.boards):
            return ExitStatus.FAILED
        return ExitStatus.OK


def close(night: Night, began: float) -> Closing:
    """Judge what was measured, write guide and page, push; returns what to say of it."""
    plan, folder = night.plan, night.journal.folder
    closing = Closing([Board(progress) for progress in night.progress])
    runs = [run for board in closing.boards for run in board.progress.runs]

    def judge(run: str) -> None:
        if measured_in(night.results / run):
            words = ["check", run, "--results", str(night.results), "--against", plan.against]
            words += ["--history", "--markdown", str(folder / f"verdict-{run}.md")]
            if plan.confirm:
                words += ["--confirm", plan.confirm, "--wait", plan.confirm]
            _call(closing, words, fine=_CHECKED, longer_s=2 * seconds(plan.confirm))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(judge, runs))
    for board in closing.boards:
        _describe(board, night.results)
    if plan.guide and any(board.runs for board in closing.boards):
        release = plan.release or "newest"
        words = ["guide", "--release", release, "--from", str(night.results)]
        _call(closing, [*words, "-o", str(folder / "guide.rst")])
    if plan.push:
        _call(closing, ["push", "--results", str(night.results)])
    values = {"night": night, "began": began, "closing": closing, "sentence": sentence(closing)}
    for suffix in ("html", "md"):
        (folder / f"night.{suffix}").write_text(render(f"night.{suffix}.j2", **values))
    return closing


def sentence(closing: Closing) -> str:
    """How the night went, in one sentence."""
    states = Counter(board.progress.state for board in closing.boards)
    whole = len(closing.boards)
    text = f"{states['measured']} of {whole} {'board' if whole == 1 else 'boards'} measured"
    others = [f"{n} {state}" for state, n in sorted(states.items()) if state != "measured"]
    worse = sum(len(board.worse) for board in closing.boards)
    others += [f"{worse} {'figure is' if worse == 1 else 'figures are'} worse"] if worse else []
    return ", ".join([text, *others]) + "."


def _describe(board: Board, results: Path) -> None:
    """Read what the runs of a job hold."""
    found: dict[Any, VerdictRecord] = {}
    for run in board.progress.runs:
        folder = results / run
        try:
            record = spool.read_run(folder)
            whole = spool.read_results(folder)
        except UsageError:
            continue
        board.runs.append(
            {
                "id": run,
                "href": f"../{run}/report.html",
                "outcome": record.outcome or "was killed",
                "place": record.place,
                "measured": sum(result.status == "measured" for result in whole),
                "cases": len(whole),
            }
        )
        for entry in spool.read_records(folder):
            if isinstance(entry, VerdictRecord):
                found[run, entry.key] = entry
    board.verdicts = dict(Counter(entry.verdict for entry in found.values()))
    board.worse = [
        f"{entry.benchmark} {entry.case} {entry.metric}: {entry.reason}"
        for entry in found.values()
        if entry.verdict == "worse"
    ]


def _call(
    closing: Closing, words: Sequence[str], fine: Sequence[int] = (0,), longer_s: float = 0.0
) -> None:
    command = [sys.executable, "-m", "evmperf.cli.main", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMMAND_S + longer_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        closing.commands.append((f"evmperf {words[0]}", str(error)))
        return
    if done.returncode not in fine:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        closing.commands.append((f"evmperf {words[0]}", said[-1].removeprefix("evmperf: ")))
