"""Cold boots, one cycle after the other: marks, failed cycles, and the record of each boot."""

from collections.abc import Mapping
from dataclasses import replace

from evmperf.benchmarks.families import boot as boot_readings
from evmperf.boards import ends
from evmperf.boards.console.booted import another_system
from evmperf.boards.console.marks import Phase, last_phase
from evmperf.measure.bench import Bench, Clock
from evmperf.measure.progress import StepProgress
from evmperf.measure.runs.spool import Spool
from evmperf.model.errors import BoardError, EvmperfError, Kind, LabError, Stopped
from evmperf.model.results import MARKS, Failure

_CLOCK_RETRIES = 2
"""Repeated boots of a cycle whose marks were stamped too late."""


class BootCycles:
    """Boots of one board, into one spool."""

    def __init__(self, bench: Bench, spool: Spool, clock: Clock) -> None:
        self.bench = bench
        self.spool = spool
        self.broken = ""
        """Why the board counts as broken, "" while it boots."""
        self.seconds = 0.0
        """Of all boots."""
        self._clock = clock
        self._has_booted = False
        self._system: Mapping[str, str] = {}
        """What the first boot of a series booted."""

    def measure(self, progress: StepProgress) -> None:
        """Measure a case of cold boots; raises BoardError when more failed than the board file allows."""
        allowed = self.bench.board.options.boot.max_failures
        if asked := self.bench.board.options.boot.ends:
            progress.conditions["ends"] = ends.described(asked)
        arguments = str(progress.case.params.get("kernel_arguments", ""))
        failed = 0
        self._system = {}
        self.record()
        if self.spool.run.facts.provisioned and not self._has_booted:
            first = self.bench.cold_boot(arguments)
            self.record()
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

    def _measure_cycle(self, progress: StepProgress, cycle: int, arguments: str) -> bool:
        """One cold boot, repeated if the lab's clock failed; False, and recorded, if the board failed."""
        late = 0
        while True:
            boot = self.bench.cold_boot(arguments)
            self.record()
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

    def record(self) -> None:
        """Append all boots since the last call to the spool."""
        for boot in self.bench.boots():
            self.seconds += boot.duration_s
            self._has_booted |= boot.error is None and boot.goal != "uboot"
            self.spool.append(boot_readings.record(boot))
            banner = boot.marks.get(Phase.UBOOT_BANNER)
            if banner and self.spool.run.facts.uboot != banner.text:
                self.spool.run.facts.uboot = banner.text
                self.spool.save()
