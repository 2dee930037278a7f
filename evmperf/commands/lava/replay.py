"""A job's log as the runner's bench: what LAVA's test shell and power cycles left, step by step."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from evmperf.boards import prompts
from evmperf.boards.board import Board
from evmperf.boards.console.booted import identity
from evmperf.boards.console.marks import ObservedBoot, Phase, find
from evmperf.boards.console.record import POWER_ON, ConsoleRecord
from evmperf.commands.lava import joblog
from evmperf.commands.lava.joblog import LogEntry
from evmperf.commands.lava.render import JobConsole
from evmperf.measure import shellstep
from evmperf.measure.around import LOOK, STATE
from evmperf.measure.bench import Shell, ShellReply, StepOutput
from evmperf.model.errors import BoardError, EvmperfError, LabError, RefusedOutput, ToolError
from evmperf.model.records import BootMark

STAMP_NS = 150_000_000
"""Stated error of LAVA's stamps in ns: its dispatcher stamps whole lines, without priority."""

_SWITCHED = re.compile(r"Returned 0 in \d+ seconds")
_MATCHED = re.compile(r"Matched prompt #\d+: (.*)", re.DOTALL)

_EARLIER = {
    prompts.LOGIN_PROMPT: "login: ",
    prompts.INIT_SHELL_PROMPT: r"[\r\n](?:\x1b\[\?2004h)?[^\r\n\[]{0,20}# ",
}
"""Patterns that jobs of earlier versions of evmperf gave LAVA for the same prompts."""


class _LoggedShell:
    """Stands for the job's shell, whose steps LoggedJob reads."""

    files = None

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Nothing but steps can be read from a log; raises LabError."""
        raise LabError(f"`{command[:80]}` is not a step of the job, so its log has no output of it")


@dataclass
class LoggedJob:
    """A job's log as the runner's bench, steps and clock; `now_ns` is the moment of what was read last.

    `measured` are the power cycles that its boot benchmarks asked for, in order, `others` those around them,
    `blocks` the outputs of its steps; `failure` is why the job did not complete.
    """

    board: Board
    now_ns: int
    measured: list[ObservedBoot]
    others: list[ObservedBoot]
    blocks: dict[str, joblog.MarkedBlock]
    failure: EvmperfError | None
    _seen: list[ObservedBoot] = field(default_factory=list, init=False)
    _read: set[str] = field(default_factory=set, init=False)
    _shell: Shell = field(default_factory=_LoggedShell, init=False)

    def time_ns(self) -> int:
        """The moment of what was read last, in the log's time."""
        return self.now_ns

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.now_ns / 1e9

    def sleep(self, seconds: float) -> None:
        """Go on in the log's time."""
        self.now_ns += round(seconds * 1e9)

    def install(self, shell: Shell, folder: str = "") -> None:
        """Nothing is left to be done."""

    def run(
        self, shell: Shell, command: str, timeout_s: float, *, quiet: bool = False, label: str = "", **_: str
    ) -> StepOutput:
        """What the step of that label left. Raises RefusedOutput for what the log does not hold
        whole, ToolError for a step that hung, and the job's own failure for a step after it.
        """
        if label == LOOK:  # the job's own steps have written it
            return StepOutput(0, {}, 0.0, 1)
        block = self.blocks.get(label)
        if label.startswith(STATE):
            # A case that failed had its look too: the next one in the log's time counts.
            looks = (one for name, one in self.blocks.items() if name.startswith(f"{label} "))
            block = next((one for one in looks if one.time_ns > self.now_ns), None)
        if block is None:
            if self.failure:
                raise self.failure
            raise RefusedOutput(f"{label}: the log has no complete copy of its output")
        if block.label in self._read:
            raise RefusedOutput(f"{label}: a LAVA job runs this step only once")
        self._read.add(block.label)
        self.now_ns = max(self.now_ns, block.time_ns)
        if block.copies[0].startswith(joblog.HUNG):
            raise ToolError(f"`{command[:80]}` did not end within {timeout_s:g} s: it was ended")
        return decoded(block, bare=quiet)

    def shell(self) -> Shell:
        """The shell that the job's steps ran in."""
        self._seen += self.others
        self.others = []
        return self._shell

    def uboot(self) -> NoReturn:
        """Not in a LAVA job, as tester and meter; raises LabError."""
        raise LabError("a LAVA job has the board's shell only, no U-Boot, tester or meter: use --kind host")

    tester = meter = uboot

    def cold_boot(self, kernel_arguments: str) -> ObservedBoot:
        """The next power cycle with these arguments; raises the job's failure when none is left."""
        boot = next((one for one in self.measured if one.kernel_arguments == kernel_arguments), None)
        if boot is None:
            raise self.failure or BoardError("the log has no further power cycle")
        self.measured.remove(boot)
        self.now_ns = max(self.now_ns, boot.started_ns + round(boot.duration_s * 1e9))
        self._seen.append(boot)
        return boot

    def abandon(self) -> None:
        """The log goes on as it does."""

    def boots(self) -> list[ObservedBoot]:
        """Boots read since the last call."""
        seen, self._seen = self._seen, []
        return seen


def decoded(block: joblog.MarkedBlock, *, bare: bool = False) -> StepOutput:
    """What a step left, of its first whole copy; raises RefusedOutput."""
    for fetches, copy in enumerate(block.copies, 1):
        try:
            # The job's log says when a step ended, but not by whose clock.
            return replace(shellstep.decode(copy, bare=bare), fetches=fetches, uptime_s=None)
        except RefusedOutput as damaged:
            error = damaged
    raise RefusedOutput(f"{block.label}: {error} (both copies)", "\n".join(block.copies))


def find_boots(
    entries: Iterable[LogEntry], console: JobConsole, cycles: list[str]
) -> tuple[list[ObservedBoot], list[ObservedBoot]]:
    """The power cycles of a log with their marks: those of its first boot actions, whose kernel arguments are
    `cycles`, and those of later ones.
    """
    found: list[tuple[int, list[LogEntry]]] = []
    for entry in entries:
        if action := joblog.power_on(entry):
            found.append((action, []))
        if found:
            found[-1][1].append(entry)
    boots: tuple[list[ObservedBoot], list[ObservedBoot]] = [], []
    for action, said in found:
        number = action - found[0][0]
        arguments = cycles[number] if number < len(cycles) else ""
        boot = _boot(said, arguments, console.prompt_after(arguments))
        (boots[0] if number < len(cycles) else boots[1]).append(boot)
    return boots


def _boot(entries: list[LogEntry], arguments: str, prompt: str) -> ObservedBoot:
    output = joblog.board_lines(entries)
    # The power is on when the last of the switch's commands has ended.
    switching = itertools.takewhile(lambda entry: entry.level != "target", entries)
    on = [entries[0], *(entry for entry in switching if _SWITCHED.match(entry.text))][-1]
    lines = [_record(entry.time_ns, "<", f"{entry.text}\r\n") for entry in output]
    marks = find([_record(on.time_ns, "#", POWER_ON), *lines], prompt)
    # LAVA does not read while it works the switch: what came first has no time of its own.
    marks.pop(Phase.FIRST_OUTPUT, None)
    # A prompt has no line's end, so LAVA logs it with what is typed after it; but it says when the
    # pattern matched.
    matches = ((_MATCHED.match(entry.text), entry) for entry in entries if entry.level != "target")
    asked = (prompt, _EARLIER.get(prompt))
    seen = [entry.time_ns for match, entry in matches if match and match[1] in asked]
    if seen and Phase.STARTING_KERNEL in marks:
        marks[Phase.PROMPT] = BootMark(Phase.PROMPT, seen[0], seen[0], STAMP_NS / 1e9, prompt)
    end = marks[Phase.PROMPT].wall_ns if Phase.PROMPT in marks else (output or [on])[-1].time_ns
    error = None if Phase.PROMPT in marks else BoardError("no prompt came")
    return ObservedBoot(
        goal="booted",
        kernel_arguments=arguments,
        started_ns=on.time_ns,
        duration_s=(end - on.time_ns) / 1e9,
        marks=marks,
        error=error,
        phase="login prompt" if error else "",
        measured=False,
        system=identity("".join(f"{entry.text}\r\n" for entry in output)),
    )


def _record(time_ns: int, kind: str, text: str) -> ConsoleRecord:
    return ConsoleRecord(time_ns, time_ns, kind, text.encode(), STAMP_NS)
