"""The machines that steps run on, as a session has them: the board's Linux and U-Boot, and the tester."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.step import CONSOLE, CleanUp, Command, Measure, MeasurePower, Outputs, Prepare, Where
from evmperf.benchmarks.tools import meter as log
from evmperf.benchmarks.tools import perf as perf_tool
from evmperf.boards.variation import Variation
from evmperf.measure import provenance, shellstep, varied
from evmperf.measure.bench import Bench, Clock, Shell, Steps
from evmperf.measure.progress import StepProgress
from evmperf.measure.runs.spool import Spool
from evmperf.measure.state import look
from evmperf.measure.supply import BoardClock
from evmperf.model.errors import BoardError, EvmperfError, LabError, ToolError
from evmperf.model.places import STEP_FOLDER

_EVERY_S = 0.5
"""Minimum seconds between two sweeps over the rails: a meter averages over part of that."""
_PERF_S = 300.0
"""Seconds that perf may take to begin and to put its stacks together."""


@dataclass
class Machines:
    """Board and tester of one session. The wrapper of the steps is installed before the first, the board's
    facts are gathered once, versions of tools are asked once.
    """

    bench: Bench
    spool: Spool
    profile: str
    tools: Sequence[str]
    release: str
    steps: Steps
    clock: Clock
    variation: Variation
    perf: bool
    watched: bool
    """Whether cases have looks around them."""
    timed: bool
    """False for a log that is replayed."""
    broken: str = field(default="", init=False)
    """Why the board counts as broken, "" while it comes up."""
    has_facts: bool = field(default=False, init=False)
    installed_on: Shell | None = field(default=None, init=False)
    """The shell of the board's Linux that has the wrapper."""
    _tester: Shell | None = field(default=None, init=False)
    _beside_tools: dict[Sequence[str], dict[str, str]] = field(default_factory=dict, init=False)
    _clocks: dict[str, BoardClock] = field(default_factory=dict, init=False)
    """Of the board and the tester, by the folder of their steps."""

    @property
    def tester_folder(self) -> str:
        """The folder of the steps on the tester, which may serve several boards."""
        return f"{STEP_FOLDER}-{self.spool.run.id}"

    def linux(self) -> Shell:
        """The shell, with the wrapper installed and the facts gathered."""
        shell = self._reach(self.bench.shell)
        if shell is not self.installed_on:
            self.steps.install(shell)
            self._clocks.pop(STEP_FOLDER, None)
            varied.apply(self.variation, shell, self.steps)
            self.installed_on = shell
        if not self.has_facts:
            self._gather_facts(shell)
        return shell

    def lacking(self, benchmark: Benchmark) -> list[str]:
        """The tools of a benchmark that the board has not; those of no planned case are asked for now."""
        shell, tools = self.linux(), benchmark.tools_on(self.bench.board)
        if unasked := sorted({*tools}.difference(self.tools)):
            self.tools = [*self.tools, *unasked]
            answer = self.steps.run(shell, provenance.tool_script(unasked), 60)
            self.spool.run.facts.tools |= provenance.tools(answer.files)
        return [tool for tool in tools if tool not in self.spool.run.facts.tools]

    def check_tools(self, progress: StepProgress) -> None:
        """Record the versions of the benchmark's tools; raises ToolError for a missing one."""
        benchmark = progress.benchmark
        for tool in self.lacking(benchmark):
            raise ToolError(f"{tool} is not on the board's PATH: install it in the board's image")
        versions = self.spool.run.facts.tools
        progress.tools |= {tool: versions[tool] for tool in benchmark.tools_on(self.bench.board)}
        if not benchmark.tester_tools:
            return
        for tool, version in self.versions_beside(benchmark).items():
            progress.tools[f"tester {tool}"] = version
        for tool in benchmark.tester_tools:
            if f"tester {tool}" not in progress.tools:
                raise LabError(f"{tool} is not on the tester's PATH: install it there")

    def versions_beside(self, benchmark: Benchmark) -> dict[str, str]:
        """Versions of the tester's tools, asked once a session."""
        if benchmark.tester_tools not in self._beside_tools:
            script = provenance.tool_script(benchmark.tester_tools)
            done = self.steps.run(self.beside(), script, 30, folder=self.tester_folder)
            self._beside_tools[benchmark.tester_tools] = provenance.tools(done.files)
        return self._beside_tools[benchmark.tester_tools]

    def beside(self) -> Shell:
        """The tester's shell with the wrapper installed."""
        if self._tester is None:
            tester = self.bench.tester()
            self.steps.install(tester, self.tester_folder)
            self._tester = tester
            if limits := getattr(tester, "limits", ""):
                self.spool.run.facts.tester_limits = limits
        return self._tester

    def perform(self, step: Command, progress: StepProgress) -> Outputs:
        """Run a step's command in the shell of its machine."""
        if isinstance(step, MeasurePower):
            return self._perform_metered(step, progress)
        if step.where is Where.TESTER:
            return self._perform_in_linux(self.beside(), step, progress, self.tester_folder)
        return self._perform_in_linux(self.linux(), step, progress, STEP_FOLDER)

    def _perform_metered(self, step: MeasurePower, progress: StepProgress) -> Outputs:
        """Perform a step of two commands, between which the meter is read; it is asked before the first.
        Raises BoardError if the board does not answer afterwards, and the errors of meter and commands.
        """
        meter, shell, window, clock = self.bench.meter(), self.linux(), step.window, self.clock
        began, busy_s = clock.monotonic(), progress.tool_s
        meter.check(window.rails)
        sent = clock.monotonic()
        asleep = Prepare(step.name, step.command, step.timeout_s)
        self._perform_in_linux(shell, asleep, progress, STEP_FOLDER)
        returned = clock.monotonic()
        samples: list[log.Sweep] = []
        self._wait_until(returned + window.settle_s)
        while True:
            now = clock.monotonic()
            for rail, answers in meter.read(window.rails).items():
                samples.append((now - returned, rail, *answers))
            ended = clock.monotonic() - returned
            if ended >= window.settle_s + window.window_s:
                break
            self._wait_until(now + _EVERY_S)
        self._wait_until(returned + window.quiet_s)
        try:
            awake = replace(step, command=window.check, timeout_s=window.check_s)
            outputs = self._perform_in_linux(shell, awake, progress, STEP_FOLDER)
        except BoardError as error:
            silent = f"the board does not answer {window.quiet_s:g} s after it was sent to sleep"
            raise BoardError(f"{silent}: {error}") from error
        # The board's busy time is its sleep.
        progress.tool_s = busy_s + clock.monotonic() - began
        return {**outputs, log.JSON_FILE: log.write(returned - sent, ended, samples)}

    def _wait_until(self, monotonic_s: float) -> None:
        self.clock.sleep(max(0.0, monotonic_s - self.clock.monotonic()))

    def _perform_in_linux(self, shell: Shell, step: Command, progress: StepProgress, folder: str) -> Outputs:
        progress.performed += 1  # a step that hangs is one, too: its case has its state
        command = step.command
        if self.watched and isinstance(step, CleanUp):
            command = f"{look.MOUNTED}{command}"
        timeout_s = step.timeout_s
        if self.perf and isinstance(step, Measure) and step.where is Where.BOARD:
            command, timeout_s = perf_tool.around(command), timeout_s + _PERF_S
        typed_ns = self.clock.time_ns()
        output = self.steps.run(
            shell,
            command,
            timeout_s,
            quiet=isinstance(step, Prepare | CleanUp),
            folder=folder,
            label=progress.benchmark.label(progress.case, step),
        )
        clock = self._clocks.setdefault(folder, BoardClock())
        progress.worked = clock.learn(typed_ns, output, self.clock.time_ns())
        progress.tool_s += output.busy_s
        _check_exit(step, output.status, output.files.get(shellstep.LOG, ""))
        if output.fetches > 1:
            again = progress.conditions.get("fetched_again", 0) + output.fetches - 1
            progress.conditions["fetched_again"] = again
        return output.files

    def perform_in_uboot(self, shell: Shell, step: Command, progress: StepProgress) -> Outputs:
        """Run a step's command at U-Boot's prompt."""
        began, began_ns = self.clock.monotonic(), self.clock.time_ns()
        reply = shell.run(step.command, step.timeout_s)
        progress.worked = began_ns, self.clock.time_ns()
        progress.tool_s += self.clock.monotonic() - began
        _check_exit(step, reply.status, reply.text)
        return {CONSOLE: reply.text}

    def uboot(self) -> Shell:
        """U-Boot's prompt; raises BoardError or LabError."""
        return self._reach(self.bench.uboot)

    def close(self) -> None:
        """Remove our files from a board that stays on, and from the tester."""
        if self.installed_on and self.bench.board.power != "switch" and self.timed and not self.broken:
            with contextlib.suppress(EvmperfError):
                shellstep.leave(self.installed_on)
        if self._tester:
            self._tester.run(f"rm -rf {self.tester_folder}", 10)

    def _reach(self, way: Callable[[], Shell]) -> Shell:
        try:
            return way()
        except BoardError as error:
            # The strategy has used its retries: do not repeat them for each case.
            self.broken = f"the board is broken: {error}"
            raise

    def _gather_facts(self, shell: Shell) -> None:
        output = self.steps.run(shell, provenance.script(self.tools), 60, label=provenance.LABEL)
        facts = provenance.parse(output.files)
        varied.check(self.variation, facts.command_line)
        self.has_facts = True
        run = self.spool.run
        run.facts |= facts
        if self.bench.board.power == "none":
            readings = shell.run("cat /proc/uptime /proc/loadavg", 10).text.split()
            run.facts.found = dict(zip(("uptime_s", "idle_s", "load"), readings, strict=False))
        run.os = facts.os
        board_release = self.bench.board.options.board.release
        run.release = self.release or board_release or provenance.release(facts, output.files)
        self.spool.save()
        context = (shell, facts, self.steps, self.clock, self.profile)
        if self.watched and (control := varied.control_measured(*context, timed=self.timed)):
            self.spool.append(control)


def _check_exit(step: Command, status: int, text: str) -> None:
    if status:
        # U-Boot's `time` prints its line after the failed command's message.
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("time: ")]
        last = lines[-1][:200] if lines else "no message"
        raise ToolError(f"{step.name} ended with status {status}: {last}")
