"""Runs benchmarks case by case, writes results to the spool, and classifies failures."""

import contextlib
import functools
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.families import boot as boot_readings
from evmperf.benchmarks.step import (
    CONSOLE,
    CleanUp,
    Command,
    Measure,
    MeasurePower,
    Outputs,
    Plan,
    Prepare,
    Where,
)
from evmperf.benchmarks.tools import perf as perf_tool
from evmperf.boards import ends
from evmperf.boards.console.booted import another_system
from evmperf.boards.console.marks import Phase, last_phase
from evmperf.boards.variation import Variation
from evmperf.measure import documents, provenance, shellstep, ubootstate, varied
from evmperf.measure.around import Around
from evmperf.measure.bench import Bench, Clock, Shell, Steps
from evmperf.measure.procedure import Executions, Perform, Procedure, perform_metered
from evmperf.measure.progress import StepProgress
from evmperf.measure.runs.spool import Spool
from evmperf.measure.state import buses, look, rules
from evmperf.measure.state.finding import Finding
from evmperf.measure.supply import BoardClock, Recording
from evmperf.model.errors import BoardError, BoardLost, EvmperfError, Kind, LabError, Stopped, ToolError
from evmperf.model.places import STEP_FOLDER
from evmperf.model.repeats import Repeats
from evmperf.model.results import MARKS, Case, Failure, Result
from evmperf.model.state import State

_PORTS = range(20000, 30000)
"""Ports of a benchmark's server: below Linux's ephemeral ports."""
_PERF_S = 300.0
"""Seconds that perf may take to begin and to put its stacks together."""
_CLOCK_RETRIES = 2
"""Repeated boots of a cycle whose marks were stamped too late."""


class Runner:
    """Measures cases of benchmarks on one board into one spool.

    A tool's failure ends its case; a board's failure ends its case and power-cycles the board.
    After more failed boots in a case than the board file allows, the board counts as broken and
    the rest is skipped. LabError ends the run after the results are on disk. `late_s` is how late a
    time of `clock` is at most: of a log that is replayed, 0 for a board that is here.
    """

    def __init__(
        self,
        bench: Bench,
        spool: Spool,
        profile: str,
        tools: Sequence[str],
        release: str = "",
        *,
        steps: Steps = shellstep,
        clock: Clock = time,
        variation: Variation | None = None,
        repeats: Repeats | None = None,
        looks: bool = False,
        late_s: float = 0.0,
        tool: str = "",
        perf: bool = False,
    ) -> None:
        self.bench = bench
        self.spool = spool
        self.profile = profile
        self.broken = ""
        """Why the board counts as broken, "" while it works."""
        self.boot_s = 0.0
        """Seconds of all boots, including measured ones."""
        self._has_booted = False
        self._system: Mapping[str, str] = {}
        """What the first boot of a series booted."""
        self._steps = steps
        self._clock = clock
        self._late_s = late_s
        self._tools = sorted(set(tools))
        self._release = release
        self._variation = variation or Variation()
        self._tool = tool or bench.board.options.board.tool
        self._repeats = repeats or Repeats()
        self._perf = perf
        self._has_facts = False
        self._installed_on: Shell | None = None
        self._idle: Shell | None = None
        """The board's shell, None after a failure."""
        self._tester: Shell | None = None
        self._beside_tools: dict[Sequence[str], dict[str, str]] = {}
        self._tester_folder = f"{STEP_FOLDER}-{spool.run.id}"
        self._executions = Executions()
        self._measured: Counter[tuple[str, str]] = Counter()
        """How often each case of each benchmark was measured."""
        self._clocks: dict[str, BoardClock] = {}
        """Of the board and the tester, by the folder of their steps."""
        self._around = Around(bench.board, steps, clock, late_s) if looks else None

    def measure(self, benchmark: Benchmark, case: Case) -> Result:
        """Measure one case and append it to the spool.

        Returns the result of any status. Raises LabError if the lab failed (after recording the
        result) or the result cannot be written. Raises BoardLost and drops the case if somebody
        took the board, as they may have changed its state.
        """
        repeats = benchmark.profiles[self.profile].repeats
        if benchmark.place is Place.BOOT and self._repeats.boots:
            repeats = self._repeats.boots
        plan = Plan(repeats, secrets.choice(_PORTS), secrets.token_bytes(64))
        conditions = dict(benchmark.conditions(self.bench.board))
        before = self._measured[benchmark.name, case.label]
        self._measured[benchmark.name, case.label] += 1
        progress = StepProgress(benchmark, case, plan, conditions=conditions, execution=before)
        started_ns, began = self._clock.time_ns(), self._clock.monotonic()
        lab: LabError | None = None
        self._idle = None
        supply: Recording | None = None
        try:
            supply = self._supply(benchmark)
            if self.broken:
                raise BoardError(f"not tried: {self.broken}")
            self._measure_watched(progress)
        except BoardLost:
            raise
        except LabError as error:
            lab = error
            progress.failures.append(Failure.of(error))
        except EvmperfError as error:
            if error.kind is Kind.BOARD:
                self.bench.abandon()
            progress.failures.append(Failure.of(error))
        finally:
            if supply:
                supply.end()
            self._record_boots()
        result = progress.result(self.profile, started_ns, self._clock.monotonic() - began)
        if supply:
            result = supply.joined(result, progress.windows)
        self.spool.append(result)
        if self._around and not self._late_s:
            # The highest share of processes that run or wait, a minute's mean, per processor.
            load, facts = round(os.getloadavg()[0] / (os.cpu_count() or 1), 2), self.spool.run.facts
            facts.host_load = max(load, facts.host_load or 0.0)
        if lab:
            raise lab
        if result.samples and benchmark.place is not Place.UBOOT:
            self._idle = self._installed_on
        return result

    def _supply(self, benchmark: Benchmark) -> Recording | None:
        """Begin to read the board's supply, if the board file names it; a sleep has the meter for itself."""
        rails = self.bench.board.options.power.supply
        if not rails or self.broken or benchmark.place is Place.SLEEP:
            return None
        return Recording(self.bench.meter(), rails)

    def close(self, *, brief: bool = False) -> None:
        """Fetch the long documents unless `brief`, and remove our files from a board that stays on and
        from the tester.

        The documents may explain a later change. No figure depends on them.
        """
        if self._idle and not brief:
            on = functools.partial(self._steps.run, self._idle, timeout_s=120, label=documents.FOLDER)
            try:
                documents.gather(self.spool.folder, lambda command: on(command).files)
            except (EvmperfError, OSError) as error:
                self.spool.run.facts.documents_missing = str(error)
        if self._installed_on and self.bench.board.power != "switch" and not (self.broken or self._late_s):
            with contextlib.suppress(EvmperfError):
                shellstep.leave(self._installed_on)
        if self._tester:
            self._tester.run(f"rm -rf {self._tester_folder}", 10)

    def _measure_watched(self, progress: StepProgress) -> None:
        """Measure a case between two looks; once more if it was spoiled, unless others share it."""
        if progress.benchmark.ti:
            self._choose(progress)
        around, benchmark = self._around, progress.benchmark
        if around is None or benchmark.place is not Place.SHELL:
            if around:
                around.forget()
            self._measure_over(progress)
            progress.judge(self._beyond_bus(progress))
            return
        declared = benchmark.declared_steps(self.bench.board, progress.case, self.profile)
        # A log has each case once.
        again = not self._late_s and not any(map(benchmark.shared_key, declared))
        while True:
            tester = (self._beside(), self._tester_folder) if benchmark.tester_tools else None
            around.before(self.linux(), benchmark.driver, tester)
            try:
                self._measure_over(progress)
            except EvmperfError as error:
                progress.state = around.cut(str(error))
                raise
            shared = [finding for findings in progress.shared for finding in findings]
            if not progress.performed:  # another case did it
                progress.judge(shared)
                return
            try:
                progress.state = around.after(self.linux())
            except BoardError as error:
                # What was measured stands; the next case gets a board that was booted anew.
                self.bench.abandon()
                progress.state = State(missing=str(error))
                return
            ours = (*benchmark.tools_on(self.bench.board), *benchmark.tester_tools)
            spoilers = rules.judge(progress.state, ours)
            for findings in progress.shared:
                findings.extend(spoilers)
            if progress.judge([*shared, *spoilers, *self._beyond_bus(progress)]) or not again:
                return
            again, progress.rounds, progress.shared = False, 0, []

    def _choose(self, progress: StepProgress) -> None:
        """Measure the case by TI's program or by our own way, as was said and as the programs are there."""
        ways, board = progress.benchmark, self.bench.board
        self.linux()
        programs = {*self.spool.run.facts.tools}
        if ways.ti and ways.ti.tester_tools and not self._tool and programs.issuperset(ways.ti.tools):
            programs |= {f"tester {name}" for name in self._versions_beside(ways.ti)}
        progress.take(ways.by(self._tool, programs), board)

    def _beyond_bus(self, progress: StepProgress) -> list[Finding]:
        """What the bus says of a case, whose state gets its shares; a virtual board's has no clock."""
        if self.bench.board.is_virtual:
            return []
        measured = progress.result(self.profile)
        progress.state = buses.shared(measured, self.bench.board.name)
        return buses.findings(measured, self.bench.board.name)

    def _measure_over(self, progress: StepProgress) -> None:
        """Measure a case as often as requested; a failed round is the last."""
        began, done = self._clock.monotonic(), False
        while not done:
            self._measure(progress)
            progress.rounds += 1
            spent_s = self._clock.monotonic() - began
            done = progress.has_failed() or progress.enough(self._repeats, spent_s)

    def _measure(self, progress: StepProgress) -> None:
        benchmark = progress.benchmark
        if benchmark.place is Place.BOOT:
            self._measure_boots(progress)
            return
        if benchmark.place is Place.UBOOT:
            perform: Perform = functools.partial(self._perform_in_uboot, self._reach(self.bench.uboot))
        else:
            self._check_tools(progress)
            perform = self._perform_on_either
        Procedure(progress, self.bench, self.spool, perform, self._executions, self._clock).follow()
        if self._around and benchmark.place is Place.UBOOT:
            progress.state = ubootstate.ask(self._reach(self.bench.uboot), self.bench.board, benchmark.driver)

    def _measure_boots(self, progress: StepProgress) -> None:
        allowed = self.bench.board.options.boot.max_failures
        self._installed_on = None
        if asked := self.bench.board.options.boot.ends:
            progress.conditions["ends"] = ends.described(asked)
        arguments = str(progress.case.params.get("kernel_arguments", ""))
        failed = 0
        self._system = {}
        self._record_boots()
        if self.spool.run.facts.provisioned and not self._has_booted:
            first = self.bench.cold_boot(arguments)
            self._record_boots()
            how = f"{first.duration_s:.1f} s" if first.error is None else f"failed: {first.error}"
            progress.note(MARKS, f"the first boot after the image was written ({how}) is not counted")
        for cycle in range(progress.plan.repeats):
            try:
                failed += not self._measure_cycle(progress, cycle, arguments)
            except Stopped as error:
                if not progress.samples:
                    raise
                progress.conditions["boots"] = f"{cycle} of {progress.plan.repeats}: {error}"
                progress.plan = replace(progress.plan, repeats=cycle)
                break
            if failed > allowed:
                self.broken = f"the board is broken: {failed} of {cycle + 1} boots failed"
                raise BoardError(self.broken)
        if not self._has_facts and progress.samples and not arguments:
            # The board is at its login prompt; a boot time needs the facts, such as the kernel.
            self.linux()

    def _measure_cycle(self, progress: StepProgress, cycle: int, arguments: str) -> bool:
        """One cold boot, repeated if the lab's clock failed; False, and recorded, if the board failed."""
        late = 0
        while True:
            boot = self.bench.cold_boot(arguments)
            self._record_boots()
            progress.tool_s += boot.duration_s
            step = f"cycle {cycle + 1}"
            try:
                if boot.error:
                    raise boot.error
                if other := another_system(self._system, boot.system):
                    progress.failures.append(Failure.of(other, step))
                    return True
                readings = boot_readings.readings(boot)
                progress.check(readings)
                if start := boot_readings.condition(boot):
                    progress.conditions["counted_from"] = start
                if off_s := boot_readings.off_s(boot):
                    progress.conditions["off_s"] = min(off_s, progress.conditions.get("off_s", off_s))
            except LabError:
                raise
            except boot_readings.LateStamp as error:
                progress.failures.append(Failure.of(error, step))
                late += 1
                if late > _CLOCK_RETRIES:
                    return True
            except EvmperfError as error:
                phase = f" (got to {last})" if (last := last_phase(boot.marks)) else ""
                progress.failures.append(Failure(error.kind, f"{error}{phase}", step))
                return False
            else:
                self._system = {**boot.system, **self._system}
                progress.add(readings, cycle, self._clock.time_ns())
                for name, sentence in boot.missed.items():
                    progress.failures.append(Failure(Kind.BOARD, sentence, f"{step}, end {name}"))
                on, up = boot.marks.get(Phase.POWER_ON), boot.marks.get(Phase.PROMPT)
                if on and up:
                    progress.add_window((on.wall_ns, up.wall_ns), cycle)
                return True

    def linux(self) -> Shell:
        """The shell, with the wrapper installed and the facts gathered."""
        shell = self._reach(self.bench.shell)
        if shell is not self._installed_on:
            self._steps.install(shell)
            self._clocks.pop(STEP_FOLDER, None)
            varied.apply(self._variation, shell, self._steps)
            self._installed_on = shell
        if not self._has_facts:
            self._gather_facts(shell)
        return shell

    def lacking(self, benchmark: Benchmark) -> list[str]:
        """The tools of a benchmark that the board has not; those of no planned case are asked for now."""
        shell, tools = self.linux(), benchmark.tools_on(self.bench.board)
        if unasked := sorted({*tools}.difference(self._tools)):
            self._tools += unasked
            answer = self._steps.run(shell, provenance.tool_script(unasked), 60)
            self.spool.run.facts.tools |= provenance.tools(answer.files)
        return [tool for tool in tools if tool not in self.spool.run.facts.tools]

    def _check_tools(self, progress: StepProgress) -> None:
        """Record the versions of the benchmark's tools; raises ToolError for a missing one."""
        benchmark = progress.benchmark
        for tool in self.lacking(benchmark):
            raise ToolError(f"{tool} is not on the board's PATH: install it in the board's image")
        versions = self.spool.run.facts.tools
        progress.tools |= {tool: versions[tool] for tool in benchmark.tools_on(self.bench.board)}
        if not benchmark.tester_tools:
            return
        for tool, version in self._versions_beside(benchmark).items():
            progress.tools[f"tester {tool}"] = version
        for tool in benchmark.tester_tools:
            if f"tester {tool}" not in progress.tools:
                raise LabError(f"{tool} is not on the tester's PATH: install it there")

    def _versions_beside(self, benchmark: Benchmark) -> dict[str, str]:
        """Versions of the tester's tools, asked once a session."""
        if benchmark.tester_tools not in self._beside_tools:
            script = provenance.tool_script(benchmark.tester_tools)
            done = self._steps.run(self._beside(), script, 30, folder=self._tester_folder)
            self._beside_tools[benchmark.tester_tools] = provenance.tools(done.files)
        return self._beside_tools[benchmark.tester_tools]

    def _beside(self) -> Shell:
        """The tester's shell with the wrapper installed."""
        if self._tester is None:
            tester = self.bench.tester()
            self._steps.install(tester, self._tester_folder)
            self._tester = tester
            if limits := getattr(tester, "limits", ""):
                self.spool.run.facts.tester_limits = limits
        return self._tester

    def _perform_on_either(self, step: Command, progress: StepProgress) -> Outputs:
        """Run a step's command in the shell of its machine."""
        if isinstance(step, MeasurePower):
            return self._perform_metered(step, progress)
        if step.where is Where.TESTER:
            return self._perform_in_linux(self._beside(), step, progress, self._tester_folder)
        return self._perform_in_linux(self.linux(), step, progress, STEP_FOLDER)

    def _perform_metered(self, step: MeasurePower, progress: StepProgress) -> Outputs:
        meter, shell = self.bench.meter(), self.linux()
        began, busy_s = self._clock.monotonic(), progress.tool_s

        def run(command: Command) -> Outputs:
            return self._perform_in_linux(shell, command, progress, STEP_FOLDER)

        outputs = perform_metered(meter, step, run, self._clock)
        # The board's busy time is its sleep.
        progress.tool_s = busy_s + self._clock.monotonic() - began
        return outputs

    def _perform_in_linux(self, shell: Shell, step: Command, progress: StepProgress, folder: str) -> Outputs:
        progress.performed += 1  # a step that hangs is one, too: its case has its state
        command = step.command
        if self._around and isinstance(step, CleanUp):
            command = f"{look.MOUNTED}{command}"
        timeout_s = step.timeout_s
        if self._perf and isinstance(step, Measure) and step.where is Where.BOARD:
            command, timeout_s = perf_tool.around(command), timeout_s + _PERF_S
            progress.conditions["perf"] = "recorded while the tool ran, which costs time"
        typed_ns = self._clock.time_ns()
        output = self._steps.run(
            shell,
            command,
            timeout_s,
            quiet=isinstance(step, Prepare | CleanUp),
            folder=folder,
            label=progress.benchmark.label(progress.case, step),
        )
        clock = self._clocks.setdefault(folder, BoardClock())
        progress.worked = clock.learn(typed_ns, output, self._clock.time_ns())
        progress.tool_s += output.busy_s
        _check_exit(step, output.status, output.files.get(shellstep.LOG, ""))
        if output.fetches > 1:
            again = progress.conditions.get("fetched_again", 0) + output.fetches - 1
            progress.conditions["fetched_again"] = again
        return output.files

    def _perform_in_uboot(self, shell: Shell, step: Command, progress: StepProgress) -> Outputs:
        began, began_ns = self._clock.monotonic(), self._clock.time_ns()
        reply = shell.run(step.command, step.timeout_s)
        progress.worked = began_ns, self._clock.time_ns()
        progress.tool_s += self._clock.monotonic() - began
        _check_exit(step, reply.status, reply.text)
        return {CONSOLE: reply.text}

    def _reach(self, way: Callable[[], Shell]) -> Shell:
        try:
            return way()
        except BoardError as error:
            # The strategy has used its retries: do not repeat them for each case.
            self.broken = f"the board is broken: {error}"
            raise

    def _gather_facts(self, shell: Shell) -> None:
        output = self._steps.run(shell, provenance.script(self._tools), 60, label=provenance.LABEL)
        facts = provenance.parse(output.files)
        varied.check(self._variation, facts.command_line)
        self._has_facts = True
        run = self.spool.run
        run.facts |= facts
        if self.bench.board.power == "none":
            readings = shell.run("cat /proc/uptime /proc/loadavg", 10).text.split()
            run.facts.found = dict(zip(("uptime_s", "idle_s", "load"), readings, strict=False))
        run.os = facts.os
        board_release = self.bench.board.options.board.release
        run.release = self._release or board_release or provenance.release(facts, output.files)
        self.spool.save()
        context = (shell, facts, self._steps, self._clock, self.profile)
        if self._around and (control := varied.control_measured(*context, timed=not self._late_s)):
            self.spool.append(control)

    def _record_boots(self) -> None:
        for boot in self.bench.boots():
            self.boot_s += boot.duration_s
            self._has_booted |= boot.error is None and boot.goal != "uboot"
            self.spool.append(boot_readings.record(boot))
            banner = boot.marks.get(Phase.UBOOT_BANNER)
            if banner and self.spool.run.facts.uboot != banner.text:
                self.spool.run.facts.uboot = banner.text
                self.spool.save()


def _check_exit(step: Command, status: int, text: str) -> None:
    if status:
        # U-Boot's `time` prints its line after the failed command's message.
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("time: ")]
        last = lines[-1][:200] if lines else "no message"
        raise ToolError(f"{step.name} ended with status {status}: {last}")
