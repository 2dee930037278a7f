"""Runs benchmarks case by case, writes results to the spool, and classifies failures."""

import functools
import os
import secrets
import time
from collections import Counter
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.step import Plan
from evmperf.boards.variation import Variation
from evmperf.measure import documents, shellstep, ubootstate
from evmperf.measure.around import Around
from evmperf.measure.bench import Bench, Clock, Shell, Steps
from evmperf.measure.bootcycles import BootCycles
from evmperf.measure.machines import Machines
from evmperf.measure.procedure import Executions, Perform, Procedure
from evmperf.measure.progress import StepProgress
from evmperf.measure.runs.spool import Spool
from evmperf.measure.state import buses, rules
from evmperf.measure.state.finding import Finding
from evmperf.measure.supply import Recording
from evmperf.model.errors import BoardError, BoardLost, EvmperfError, Kind, LabError
from evmperf.model.repeats import Repeats
from evmperf.model.results import Case, Failure, Result
from evmperf.model.state import State

_PORTS = range(20000, 30000)
"""Ports of a benchmark's server: below Linux's ephemeral ports."""


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
        self._machines = Machines(
            bench,
            spool,
            profile,
            sorted(set(tools)),
            release,
            steps,
            clock,
            variation or Variation(),
            perf,
            watched=looks,
            timed=not late_s,
        )
        self._cycles = BootCycles(bench, spool, clock)
        self.linux, self.lacking = self._machines.linux, self._machines.lacking
        self._steps = steps
        self._clock = clock
        self._late_s = late_s
        self._tool = tool or bench.board.options.board.tool
        self._repeats = repeats or Repeats()
        self._idle: Shell | None = None
        """The board's shell, None after a failure."""
        self._executions = Executions()
        self._measured: Counter[tuple[str, str]] = Counter()
        """How often each case of each benchmark was measured."""
        self._around = Around(bench.board, steps, clock, late_s) if looks else None

    @property
    def broken(self) -> str:
        """Why the board counts as broken, "" while it works."""
        return self._cycles.broken or self._machines.broken

    @property
    def boot_s(self) -> float:
        """Seconds of all boots, including measured ones."""
        return self._cycles.seconds

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
            self._cycles.record()
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
            self._idle = self._machines.installed_on
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
        self._machines.close()

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
            tester = (
                (self._machines.beside(), self._machines.tester_folder) if benchmark.tester_tools else None
            )
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
            programs |= {f"tester {name}" for name in self._machines.versions_beside(ways.ti)}
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
        benchmark, case = progress.benchmark, progress.case
        if benchmark.place is Place.BOOT:
            self._machines.installed_on = None
            self._cycles.measure(progress)
            if not self._machines.has_facts and progress.samples and not case.params.get("kernel_arguments"):
                # The board is at its login prompt; a boot time needs the facts, such as the kernel.
                self.linux()
            return
        if benchmark.place is Place.UBOOT:
            perform: Perform = functools.partial(self._machines.perform_in_uboot, self._machines.uboot())
        else:
            self._machines.check_tools(progress)
            perform = self._machines.perform
        Procedure(progress, self.bench, self.spool, perform, self._executions, self._clock).follow()
        if self._around and benchmark.place is Place.UBOOT:
            progress.state = ubootstate.ask(self._machines.uboot(), self.bench.board, benchmark.driver)
