"""A job's log as the runner's bench: what LAVA's test shell and power cycles left, step by step."""

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

_RESET = re.compile(r"start: (\d+)\.\S* reset-device")
_SWITCHED = re.compile(r"Returned 0 in \d+ seconds")
_MATCHED = re.compile(r"Matched prompt #\d+: (.*)", re.DOTALL)

_EARLIER = {
    prompts.LOGIN_PROMPT: "login: ",
    prompts.INIT_SHELL_PROMPT: r"[\r\n](?:\x1b\[\?2004h)?[^\r\n\[]{0,20}# ",
}
"""Patterns that jobs of earlier versions of evmperf gave LAVA for the same prompts."""


LoggedBoot = tuple[int, ObservedBoot]
"""One power cycle of the log: the number of its boot action (from 0), and how it went."""


class LoggedJob:
    """A job's log as the runner's bench, steps and clock.

    `boots` are its power cycles, `cycles` the kernel's arguments of each measured one, in order, `blocks` the
    outputs of its steps; `failure` is why the job did not complete.
    """

    def __init__(
        self,
        board: Board,
        began_ns: int,
        boots: list[LoggedBoot],
        cycles: list[str],
        blocks: dict[str, joblog.MarkedBlock],
        *,
        failure: EvmperfError | None,
    ) -> None:
        self.board = board
        self._now_ns = began_ns
        self._cycles = [(cycles[action], boot) for action, boot in boots if action < len(cycles)]
        self._others = [boot for action, boot in boots if action >= len(cycles)]
        self._seen: list[ObservedBoot] = []
        self._shell = _LoggedShell()
        self._blocks = blocks
        self._read: set[str] = set()
        self._failure = failure

    def time_ns(self) -> int:
        """The moment of what was read last, in the log's time."""
        return self._now_ns

    def monotonic(self) -> float:
        """The same in seconds."""
        return self._now_ns / 1e9

    def sleep(self, seconds: float) -> None:
        """Go on in the log's time."""
        self._now_ns += round(seconds * 1e9)

    def install(self, shell: Shell, folder: str = "") -> None:
        """Nothing is left to be done."""

    def run(
        self,
        shell: Shell,
        command: str,
        timeout_s: float,
        *,
        quiet: bool = False,
        folder: str = "",
        label: str = "",
    ) -> StepOutput:
        """What the step of that label left. Raises RefusedOutput for what the log does not hold
        whole, ToolError for a step that hung, and the job's own failure for a step after it.
        """
        if label == LOOK:  # the job's own steps have written it
            return StepOutput(0, {}, 0.0, 1)
        block = self._blocks.get(label)
        if label.startswith(STATE):
            # A case that failed had its look too: the next one in the log's time counts.
            looks = (one for name, one in self._blocks.items() if name.startswith(f"{label} "))
            block = next((one for one in looks if one.time_ns > self._now_ns), None)
        if block is None:
            if self._failure:
                raise self._failure
            raise RefusedOutput(f"{label}: the log has no complete copy of its output")
        if block.label in self._read:
            raise RefusedOutput(f"{label}: a LAVA job runs this step only once")
        self._read.add(block.label)
        self._now_ns = max(self._now_ns, block.time_ns)
        if block.copies[0].startswith(joblog.HUNG):
            raise ToolError(f"`{command[:80]}` did not end within {timeout_s:g} s: it was ended")
        return decoded(block, bare=quiet)

    def shell(self) -> Shell:
        """The shell that the job's steps ran in."""
        self._seen += self._others
        self._others = []
        return self._shell

    def uboot(self) -> NoReturn:
        """Not in a LAVA job, as tester and meter; raises LabError."""
        raise LabError("a LAVA job has the board's shell only, no U-Boot, tester or meter: use --kind host")

    tester = meter = uboot

    def cold_boot(self, kernel_arguments: str) -> ObservedBoot:
        """The next power cycle with these arguments; raises the job's failure when none is left."""
        cycle = next((cycle for cycle in self._cycles if cycle[0] == kernel_arguments), None)
        if cycle is None:
            raise self._failure or BoardError("the log has no further power cycle")
        self._cycles.remove(cycle)
        _, boot = cycle
        self._now_ns = max(self._now_ns, boot.started_ns + round(boot.duration_s * 1e9))
        self._seen.append(boot)
        return boot

    def abandon(self) -> None:
        """The log goes on as it does."""

    def boots(self) -> list[ObservedBoot]:
        """Boots read since the last call."""
        seen, self._seen = self._seen, []
        return seen


class _LoggedShell:
    """Stands for the job's shell, whose steps LoggedSteps reads."""

    files = None

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Nothing but steps can be read from a log; raises LabError."""
        raise LabError(f"`{command[:80]}` is not a step of the job, so its log has no output of it")


def decoded(block: joblog.MarkedBlock, *, bare: bool = False) -> StepOutput:
    """What a step left, of its first whole copy; raises RefusedOutput."""
    for fetches, copy in enumerate(block.copies, 1):
        try:
            # The job's log says when a step ended, but not by whose clock.
            return replace(shellstep.decode(copy, bare=bare), fetches=fetches, uptime_s=None)
        except RefusedOutput as damaged:
            error = damaged
    raise RefusedOutput(f"{block.label}: {error} (both copies)", "\n".join(block.copies))


@dataclass
class _Cycle:
    """A power cycle: its action's level in LAVA's pipeline, its console, the times of matched prompts."""

    level: int
    records: list[ConsoleRecord]
    matched: list[tuple[str, int]] = field(default_factory=list)


def find_boots(entries: Iterable[LogEntry], console: JobConsole, cycles: list[str]) -> list[LoggedBoot]:
    """All power cycles of a log with their marks; `cycles` are the kernel's arguments of the first ones."""
    cycles_found: list[_Cycle] = []
    for entry in entries:
        if reset := _RESET.match(entry.text):
            cycles_found.append(_Cycle(int(reset[1]), [_record(entry.time_ns, "#", POWER_ON)]))
            continue
        if not cycles_found:
            continue
        records = cycles_found[-1].records
        if len(records) == 1 and _SWITCHED.match(entry.text):
            # The power is on when the last of the switch's commands has ended.
            records[:] = [_record(entry.time_ns, "#", POWER_ON)]
        elif entry.level == "target":
            records.append(_record(entry.time_ns, "<", f"{entry.text}\r\n"))
        elif match := _MATCHED.match(entry.text):
            cycles_found[-1].matched.append((match[1], entry.time_ns))
    boots = []
    for cycle in cycles_found:
        action = cycle.level - cycles_found[0].level
        arguments = cycles[action] if action < len(cycles) else ""
        boots.append((action, _boot(cycle, arguments, console.prompt_after(arguments))))
    return boots


def _boot(cycle: _Cycle, arguments: str, prompt: str) -> ObservedBoot:
    records = cycle.records
    marks = find(records, prompt)
    # LAVA does not read while it works the switch: what came first has no time of its own.
    marks.pop(Phase.FIRST_OUTPUT, None)
    # A prompt has no line's end, so LAVA logs it with what is typed after it; but it says when the
    # pattern matched.
    asked = (prompt, _EARLIER.get(prompt))
    seen = [time_ns for pattern, time_ns in cycle.matched if pattern in asked]
    if seen and Phase.STARTING_KERNEL in marks:
        marks[Phase.PROMPT] = BootMark(Phase.PROMPT, seen[0], seen[0], STAMP_NS / 1e9, prompt)
    begin = records[0].wall_ns
    end = marks[Phase.PROMPT].wall_ns if Phase.PROMPT in marks else records[-1].wall_ns
    error = None if Phase.PROMPT in marks else BoardError("no prompt came")
    return ObservedBoot(
        goal="booted",
        kernel_arguments=arguments,
        started_ns=begin,
        duration_s=(end - begin) / 1e9,
        marks=marks,
        error=error,
        phase="login prompt" if error else "",
        measured=False,
        system=identity(b"".join(r.data for r in records if r.kind == "<").decode("utf-8", "replace")),
    )


def _record(time_ns: int, kind: str, text: str) -> ConsoleRecord:
    return ConsoleRecord(time_ns, time_ns, kind, text.encode(), STAMP_NS)
