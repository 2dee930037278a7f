"""Running benchmarks: case by case, onto the spool, with every way it can go wrong told apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evmperf import boot as boot_readings
from evmperf import provenance, shellstep
from evmperf.bench import Bench, Boot, Shell
from evmperf.benchmark import Benchmark, Outputs, Place, Step
from evmperf.errors import BoardError, EvmperfError, Kind, LabError, RefusedOutput, ToolError
from evmperf.marks import Phase
from evmperf.model import Case, Failure, Reading, Result, Sample, Status
from evmperf.spool import Spool

CONSOLE = "console"
"""Name of the only output of a U-Boot step."""


@dataclass
class _Progress:
    """What has come of a case so far."""

    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    tool_s: float = 0.0


class Runner:
    """Measures cases of benchmarks on one board into one spool.

    A tool's failure costs its case; a board's failure costs its case and a power cycle; after as
    many failed boots in a row as the board's file allows, the board is called broken and nothing
    more is tried on it. LabError ends the run, after what was measured is safe.
    """

    def __init__(
        self, bench: Bench, spool: Spool, profile: str, tools: Sequence[str], release: str = ""
    ) -> None:
        self.bench = bench
        self.spool = spool
        self.profile = profile
        self.broken = ""
        """Why the board is called broken, "" while it is not."""
        self._tools = sorted(set(tools))
        self._release = release
        self._facts: dict[str, Any] | None = None
        self._installed_on: Shell | None = None

    def measure(self, benchmark: Benchmark, case: Case) -> Result:
        """Measure one case and put it on the spool.

        Returns the result whatever became of it; raises LabError (after recording the result) when
        the lab is what failed, or when the result cannot be written.
        """
        progress = _Progress(conditions=dict(benchmark.conditions(self.bench.board)))
        started_ns, began = time.time_ns(), time.monotonic()
        lab: LabError | None = None
        try:
            if self.broken:
                raise BoardError(f"not tried: {self.broken}")
            self._measure(benchmark, case, progress)
        except LabError as error:
            lab = error
            progress.failures.append(Failure.of(error))
        except EvmperfError as error:
            if error.kind is Kind.BOARD:
                self.bench.abandon()
            progress.failures.append(Failure.of(error))
        finally:
            self._record_boots()
        result = Result(
            benchmark=benchmark.name,
            version=benchmark.version,
            driver=benchmark.driver,
            case=case.label,
            params=case.params,
            profile=self.profile,
            status=_status(benchmark, self.profile, progress),
            samples=tuple(progress.samples),
            failures=tuple(progress.failures),
            tools=progress.tools,
            conditions=progress.conditions,
            raw=tuple(progress.raw),
            started_ns=started_ns,
            duration_s=time.monotonic() - began,
            tool_s=progress.tool_s,
        )
        self.spool.append_result(result)
        if lab:
            raise lab
        return result

    def _measure(self, benchmark: Benchmark, case: Case, progress: _Progress) -> None:
        if benchmark.place is Place.BOOT:
            self._measure_boots(benchmark, case, progress)
            return
        steps = benchmark.steps(
            self.bench.board, case, benchmark.profiles[self.profile]
        )
        if benchmark.place is Place.UBOOT:
            shell = self._reach(self.bench.uboot)
            perform = self._perform_in_uboot
        else:
            shell = self._linux(benchmark, progress)
            perform = self._perform_in_linux
        self._go_through(benchmark, case, steps, shell, perform, progress)

    def _go_through(
        self,
        benchmark: Benchmark,
        case: Case,
        steps: Sequence[Step],
        shell: Shell,
        perform: Callable[[Shell, Step, _Progress], Outputs],
        progress: _Progress,
    ) -> None:
        prepared = True
        for step in steps:
            if not prepared and not step.always:
                continue
            try:
                self._measure_step(benchmark, case, step, shell, perform, progress)
            except ToolError as error:
                raw = self._keep_refused(benchmark, case, step, error, progress)
                progress.failures.append(Failure.of(error, step.name, raw))
                if step.parse is None and not step.always:
                    prepared = False

    def _measure_step(
        self,
        benchmark: Benchmark,
        case: Case,
        step: Step,
        shell: Shell,
        perform: Callable[[Shell, Step, _Progress], Outputs],
        progress: _Progress,
    ) -> None:
        """Do a step; one whose output is refused is done once more, and the refusal is kept.

        Every step can be done twice: preparing starts from nothing, cleaning up asks first.
        """
        for last in (False, True):
            try:
                outputs = perform(shell, step, progress)
                if step.parse is None:
                    return
                readings = step.parse(outputs)
                for reading in readings:
                    benchmark.metric(reading.metric).check(reading.value, "\n".join(outputs.values()))
            except RefusedOutput as error:
                if last:
                    raise
                raw = self._keep_refused(benchmark, case, step, error, progress)
                progress.failures.append(Failure.of(error, step.name, raw))
                continue
            now = time.time_ns()
            progress.samples += _samples(benchmark, readings, step.repetition, now)
            for name, text in outputs.items():
                progress.raw.append(
                    self.spool.keep_raw(f"{benchmark.name}/{case.label}/{step.name}.{name}", text)
                )
            return

    def _keep_refused(
        self, benchmark: Benchmark, case: Case, step: Step, error: ToolError, progress: _Progress
    ) -> str:
        if not isinstance(error, RefusedOutput) or not error.raw:
            return ""
        name = f"{benchmark.name}/{case.label}/{step.name}.refused{len(progress.failures)}"
        return self.spool.keep_raw(name, error.raw)

    def _perform_in_linux(self, shell: Shell, step: Step, progress: _Progress) -> Outputs:
        output = shellstep.run(shell, step.command, step.timeout_s)
        progress.tool_s += output.busy_s
        if output.status:
            said = output.files.get(shellstep.LOG, "").strip().splitlines()
            raise ToolError(
                f"{step.name} ended with status {output.status}: "
                f"{said[-1][:200] if said else 'no message'}"
            )
        if output.fetches > 1:
            progress.conditions["fetched_again"] = (
                progress.conditions.get("fetched_again", 0) + output.fetches - 1
            )
        return output.files

    def _perform_in_uboot(self, shell: Shell, step: Step, progress: _Progress) -> Outputs:
        began = time.monotonic()
        reply = shell.run(step.command, step.timeout_s)
        progress.tool_s += time.monotonic() - began
        if reply.status:
            said = reply.text.strip().splitlines()
            raise ToolError(
                f"{step.name} ended with status {reply.status} in U-Boot: "
                f"{said[-1][:200] if said else 'no message'}"
            )
        return {CONSOLE: reply.text}

    def _measure_boots(self, benchmark: Benchmark, case: Case, progress: _Progress) -> None:
        cycles = benchmark.profiles[self.profile].repeats
        allowed = self.bench.board.option("boot", "max_failures", 5)
        failed = 0
        for cycle in range(cycles):
            boot = self.bench.cold_boot(str(case.params.get("kernel_arguments", "")))
            self._record_boots()
            progress.tool_s += boot.duration_s
            step = f"cycle {cycle + 1}"
            if boot.error:
                failed += 1
                phase = f" at the {boot.phase}" if boot.phase else ""
                progress.failures.append(
                    Failure(boot.error.kind, f"{boot.error}{phase}", step)
                )
            else:
                try:
                    readings = boot_readings.readings(boot)
                    for reading in readings:
                        benchmark.metric(reading.metric).check(reading.value)
                except RefusedOutput as error:
                    failed += 1
                    progress.failures.append(Failure.of(error, step))
                else:
                    progress.samples += _samples(benchmark, readings, cycle, time.time_ns())
            if failed > allowed:
                self.broken = f"the board is broken: {failed} of {cycle + 1} boots failed"
                raise BoardError(self.broken)

    def _linux(self, benchmark: Benchmark, progress: _Progress) -> Shell:
        """A shell with the wrapper installed, and the facts known."""
        shell = self._reach(self.bench.shell)
        if shell is not self._installed_on:
            shellstep.install(shell)
            self._installed_on = shell
        if self._facts is None:
            self._gather_facts(shell)
        known = (self._facts or {}).get("tools", {})
        for tool in benchmark.tools:
            if tool not in known:
                raise ToolError(
                    f"{tool} is not on the board's PATH: install it in the board's image"
                )
            progress.tools[tool] = known[tool]
        return shell

    def _reach(self, way: Callable[[], Shell]) -> Shell:
        try:
            return way()
        except BoardError as error:
            # The strategy has power-cycled as often as it may: no use to do that for each case.
            self.broken = f"the board is broken: {error}"
            raise

    def _gather_facts(self, shell: Shell) -> None:
        output = shellstep.run(shell, provenance.script(self._tools), 60)
        self._facts = provenance.parse(output.files)
        run = self.spool.run
        run.facts.update(self._facts)
        run.os = str(self._facts.get("os", ""))
        board_release = self.bench.board.option("board", "release", "")
        run.release = (
            self._release or board_release or provenance.release(self._facts, output.files)
        )
        self.spool.save()

    def _record_boots(self) -> None:
        for boot in self.bench.boots():
            self.spool.append(_boot_record(boot))
            banner = boot.marks.get(Phase.UBOOT_BANNER)
            if banner and self.spool.run.facts.get("uboot") != banner.text:
                self.spool.run.facts["uboot"] = banner.text
                self.spool.save()


def _samples(
    benchmark: Benchmark, readings: Sequence[Reading], repetition: int, time_ns: int
) -> list[Sample]:
    return [
        Sample(r.metric, r.value, str(benchmark.metric(r.metric).unit), repetition, time_ns)
        for r in readings
    ]


def _status(benchmark: Benchmark, profile: str, progress: _Progress) -> Status:
    """Compare what was declared with what was produced, both ways."""
    have = {sample.metric for sample in progress.samples}
    missing = {metric.name for metric in benchmark.metrics if metric.required} - have
    lost = [failure for failure in progress.failures if not failure.refused]
    if not progress.samples:
        refused = progress.failures and not lost
        return Status.REFUSED if refused else Status.FAILED
    unfinished = _incomplete(benchmark, profile, progress.samples)
    return Status.PARTIAL if missing or lost or unfinished else Status.MEASURED


def _incomplete(benchmark: Benchmark, profile: str, samples: Sequence[Sample]) -> bool:
    """Whether a repetition of the benchmark's first metric is missing."""
    first = benchmark.metrics[0].name
    have = {sample.repetition for sample in samples if sample.metric == first}
    return have != set(range(benchmark.profiles[profile].repeats))


def _boot_record(boot: Boot) -> dict[str, Any]:
    return {
        "record": "boot",
        "goal": boot.goal,
        "kernel_arguments": boot.kernel_arguments,
        "started_ns": boot.started_ns,
        "duration_s": boot.duration_s,
        "marks": [
            {
                "phase": str(mark.phase),
                "mono_ns": mark.mono_ns,
                "wall_ns": mark.wall_ns,
                "error_s": mark.error_s,
                "text": mark.text,
            }
            for mark in boot.marks.values()
        ],
        "failure": (
            {"kind": str(boot.error.kind), "message": str(boot.error), "phase": boot.phase}
            if boot.error
            else None
        ),
        "post_mortem": boot.post_mortem,
    }
