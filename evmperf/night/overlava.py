"""The same night over LAVA: its scheduler finds the boards, and each job of the plan is one of its.

What is done with a LAVA job are the commands that a person would call, in processes of their own:
`evmperf lava submit`, `wait`, `import` and `cancel`.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.run import NIGHT
from evmperf.night.child import Ending, Outcome, outcome
from evmperf.night.conductor import Night, Progress
from evmperf.night.plan import board_file

_SUBMITTED = re.compile(r"^job (\d+): (https?://\S+)$", re.MULTILINE)
_STATE = re.compile(r"^job \d+: (\S+)(?: on (\S+))?$")
_JUDGED = re.compile(r"^job \d+ is (?:complete:|\w+:) .*$", re.MULTILINE)
_READ = re.compile(r"^job \d+: (?:read|was read already.*): (.+)$", re.MULTILINE)
_AWAY_S = 15.0
"""Pause before a server that did not answer is asked again, in seconds."""
_OWN_RESULTS = "host"
"""The kind of job whose session keeps its results on the lab's Labgrid host."""


@dataclass(frozen=True)
class _Said:
    status: int
    text: str

    @property
    def last(self) -> str:
        lines = self.text.strip().splitlines() or ["it said nothing"]
        return lines[-1].removeprefix("evmperf: ")


class Calls:
    """Calls of `evmperf lava`; `log` gets all that they print."""

    def __init__(self, identity: str, log: Path) -> None:
        self._identity = ["--identity", identity] if identity else []
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._cut = False

    def __call__(
        self, *words: str, hear: Callable[[str], None] = lambda line: None, last: bool = False
    ) -> _Said:
        """Call it and wait; `hear` gets each line. After `cut` only a `last` call is made."""
        command = [sys.executable, "-m", "evmperf.cli.main", "lava", *words, *self._identity]
        lines: list[str] = []
        with self._log.open("a", encoding="utf-8") as log:
            with self._lock:
                if self._cut and not last:
                    return _Said(ExitStatus.INTERRUPTED, "the night had to end")
                self._process = process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, start_new_session=True,
                )  # fmt: skip
            assert process.stdout
            with process.stdout:
                for line in process.stdout:
                    log.write(line)
                    log.flush()
                    lines.append(line)
                    hear(line.strip())
            return _Said(process.wait(), "".join(lines))

    def cut(self, *, hurry: bool = False) -> None:
        """End the call; the LAVA job goes on. Callable in any thread; it is always quick."""
        with self._lock:
            self._cut = True
            if self._process:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()


class LavaNight(Night):
    """A night whose jobs are LAVA's."""

    @property
    def coordinators(self) -> set[str]:
        """None: LAVA has boards of its own."""
        return set()

    def _try(self, progress: Progress, stack: contextlib.ExitStack) -> None:
        """Submit a job unless it has been submitted, follow it to its end, and read it."""
        self._share(progress, stack)
        calls = Calls(self.identity, self.journal.folder / f"{progress.job.name}.log")
        self._children.add(calls)
        try:
            if self.ending.is_set():
                return
            number = self._pending(progress) or self._submit(progress, calls)
            done = self._follow(progress, number, calls)
            if done is None:
                return
            self.journal.note(
                "measured", job=progress.job.name, place=progress.place, run=done.run,
                ending=done.ending, sentence=done.sentence, measured=done.measured, lava=number,
            )  # fmt: skip
        finally:
            self._children.discard(calls)
        progress.runs += [done.run] if done.run else []
        self._conclude(progress, progress.place, done)
        self.tell(f"{progress.job.name}: {done.ending} on {progress.place}: {done.sentence}")

    def _pending(self, progress: Progress) -> int:
        """The LAVA job that has been submitted and is not done with, 0 for none."""
        number = 0
        for event in self.journal.events():
            if event.get("job") == progress.job.name and "lava" in event:
                number = event["lava"] if event["event"] == "submitted" else 0
        return number

    def _submit(self, progress: Progress, calls: Calls) -> int:
        job, plan = progress.job, self.plan
        words = ["submit", str(board_file(job).absolute()), "--kind", job.lava]
        words += ["--priority", "low"]
        words += ["-k", job.benchmarks] if job.benchmarks else []
        words += ["--profile", job.profile] if job.profile else []
        words += ["--image", job.image] if job.image else []
        if release := job.release or plan.release:
            words += ["--release", release]
        said = calls(*words)
        found = _SUBMITTED.search(said.text)
        if not found:
            raise (UsageError if said.status == ExitStatus.USAGE else LabError)(said.last)
        number = int(found[1])
        progress.page = found[2]
        self.journal.note("submitted", job=job.name, lava=number, page=found[2])
        self.tell(f"{job.name}: submitted as {found[2]}")
        return number

    def _follow(self, progress: Progress, number: int, calls: Calls) -> Outcome | None:
        """How a job ended; None when that is not known yet."""

        def hear(line: str) -> None:
            if found := _STATE.match(line):
                progress.state = "measuring" if found[1] == "Running" else "waiting"
                progress.place = found[2] or progress.place
                progress.sentence = f"LAVA's job {number} is {found[1]}"

        left = self.until - time.time()
        board = str(board_file(progress.job).absolute())
        limit = f"{max(left, 0):.0f}"
        waited = calls("wait", str(number), "--board", board, "--timeout", limit, hear=hear)
        judged = _JUDGED.findall(waited.text)
        if not judged:
            return self._unknown(progress, number, calls, waited)
        if progress.job.lava == _OWN_RESULTS:
            endings = {ExitStatus.OK: Ending.MEASURED, ExitStatus.FAILED: Ending.FAILED}
            ending = endings.get(ExitStatus(waited.status), Ending.LAB)
            return Outcome(ending, judged[-1], "")
        read = calls(
            "import", str(number), "--board", board, "--results", str(self.results),
            "--run-kind", self.plan.run_kind, "--fact", f"{NIGHT}={self.journal.id}", last=True,
        )  # fmt: skip
        folder = _READ.search(read.text)
        if not folder and waited.status == ExitStatus.OK:
            raise LabError(f"what LAVA's job {number} measured cannot be read: {read.last}")
        if not folder:
            # It has no log, or one that ends before anything was measured.
            lab = waited.status == ExitStatus.LAB_BROKEN
            return Outcome(Ending.LAB if lab else Ending.BOARD, judged[-1], "")
        # Only the name: what a log says is printed there, too.
        there = self.results / Path(folder[1]).name
        return outcome(there, max(waited.status, read.status), judged[-1], cut=False)

    def _unknown(
        self, progress: Progress, number: int, calls: Calls, waited: _Said
    ) -> Outcome | None:
        """After waiting in vain: the night is over, or the server does not answer."""
        progress.sentence = waited.last
        if time.time() >= self.until:
            calls("cancel", str(number), last=True)
            return Outcome(Ending.CUT, f"the night had to end before LAVA's job {number}", "")
        if waited.status == ExitStatus.USAGE:
            return Outcome(Ending.WRONG, waited.last, "")
        self.ending.wait(_AWAY_S)
        return None
