"""Runs the steps of a case in order, and those that several cases share once."""

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from evmperf.benchmarks.step import (
    CleanUp,
    Command,
    Measure,
    MeasurePower,
    Outputs,
    Prepare,
    SearchStep,
    Step,
    Trial,
    Where,
    next_trial,
)
from evmperf.benchmarks.tools import perf
from evmperf.measure.bench import Bench, Clock
from evmperf.measure.progress import StepProgress
from evmperf.measure.runs.spool import Spool
from evmperf.measure.state.finding import Finding
from evmperf.model.errors import BoardError, EvmperfError, RefusedOutput, ToolError
from evmperf.model.results import Failure, Reading

Perform = Callable[[Command, StepProgress], Outputs]
"""Runs a command on its machine; raises its failure."""


_AT_MOST = 2
"""Maximum executions under one key: a refused output is retried once, not once per row."""


@dataclass(frozen=True)
class Execution:
    """The outputs of a step's command, its end (ns since the epoch), when it worked, and its raw files."""

    outputs: Outputs
    ended_ns: int
    worked: tuple[int, int] | None = None
    raw: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """What was found about the board around it, which holds for all rows that share it."""


class Executions:
    """Executes steps, those with the same key (except "") once, failed ones included."""

    def __init__(self) -> None:
        self._by_key: dict[str, Execution | ToolError | BoardError] = {}
        self._counts: Counter[str] = Counter()

    def get(self, key: str, perform: Callable[[], Execution]) -> Execution:
        """The execution under `key`, once; raises what `perform` raises, later ToolError."""
        earlier = self._by_key.get(key)
        if isinstance(earlier, Execution):
            return earlier
        if earlier:
            raise ToolError(f"not run again after another case: {earlier}")
        self._counts[key] += 1
        try:
            done = perform()
        except (ToolError, BoardError) as error:
            if key:
                self._by_key[key] = error
            raise
        if key:
            self._by_key[key] = done
        return done

    def may_repeat(self, key: str) -> bool:
        """Whether `get` will execute again after a refused output."""
        if key and self._counts[key] >= _AT_MOST:
            return False
        self._by_key.pop(key, None)
        return True


@dataclass(frozen=True)
class Procedure:
    """Runs a case's steps; their outputs go into `progress`."""

    progress: StepProgress
    bench: Bench
    spool: Spool
    perform: Perform
    executions: Executions
    clock: Clock

    def follow(self) -> None:
        """Run all steps. A tool's failure is noted and ends its step; if the step prepares, all
        following steps except the clean-up are skipped. Other failures are raised.
        """
        progress, prepared = self.progress, True
        steps = iter(progress.benchmark.planned(self.bench.board, progress.case, progress.plan))
        for step in steps:
            if not prepared and not isinstance(step, CleanUp):
                continue
            try:
                self._do(step)
            except ToolError as error:
                self._note_failure(step.name, error)
                prepared = prepared and not isinstance(step, Prepare)
            except EvmperfError:
                # The board itself cannot be cleaned up.
                for left in steps:
                    if isinstance(left, CleanUp) and left.where is Where.TESTER:
                        with contextlib.suppress(EvmperfError):
                            self.perform(left, progress)
                raise

    def _do(self, step: Step) -> None:
        if isinstance(step, SearchStep):
            self._search(step)
            return
        done, readings = self._carry_out(step)
        if not isinstance(step, Measure):
            return
        if isinstance(step, MeasurePower):
            self.progress.conditions["meter"] = self.bench.meter().identity()
        self.progress.conditions |= perf.conditions(done.outputs)
        self.progress.add(readings, step.repetition, done.ended_ns)
        self.progress.add_window(done.worked, step.repetition, shared=bool(step.shared))
        self.progress.shared.append(done.findings)
        self._keep_raw(step, done)

    def _search(self, search: SearchStep) -> None:
        trials = search.begin()
        trial, figures = next_trial(trials)
        while trial:
            try:
                done, readings = self._carry_out(trial)
            except ToolError as error:
                self._note_failure(trial.name, error)
                trials.close()
                return
            self.progress.add_trial(trial, readings)
            self._keep_raw(trial, done)
            trial, figures = next_trial(trials, readings)
        self.progress.check(figures)
        self.progress.add(figures, 0, self.clock.time_ns())

    def _keep_raw(self, step: Command, done: Execution) -> None:
        if not done.raw:
            done.raw.extend(
                self.spool.keep_raw(self.progress.file_name(f"{step.name}.{name}"), text)
                for name, text in done.outputs.items()
                if text  # skip an empty log
            )
        self.progress.raw.extend(done.raw)

    def _carry_out(self, step: Command) -> tuple[Execution, list[Reading]]:
        """Run a step; repeat it once after a refused output, and keep the refusal."""
        try:
            return self._try(step)
        except RefusedOutput as error:
            if not self.executions.may_repeat(self._key(step)):
                raise
            self._note_failure(step.name, error)
            return self._try(step)

    def _try(self, step: Command) -> tuple[Execution, list[Reading]]:
        key = self._key(step)
        done = self.executions.get(key, lambda: self._executed(step))
        readings = step.parse(done.outputs) if isinstance(step, Measure | Trial) else []
        if isinstance(step, Measure):
            self.progress.check(readings, "\n".join(done.outputs.values()))
        return done, readings

    def _executed(self, step: Command) -> Execution:
        self.progress.worked = None
        outputs = self.perform(step, self.progress)
        return Execution(outputs, self.clock.time_ns(), self.progress.worked)

    def _key(self, step: Command) -> str:
        """The key under which a step's execution is shared, one per round and execution of its cases."""
        key = self.progress.benchmark.shared_key(step)
        return f"{key} {self.progress.execution}.{self.progress.rounds}" if key else ""

    def _note_failure(self, step: str, error: ToolError) -> None:
        raw = ""
        if isinstance(error, RefusedOutput) and error.raw:
            name = self.progress.file_name(f"{step}.refused{len(self.progress.failures)}")
            with contextlib.suppress(RefusedOutput):  # cleaning up goes on without it
                raw = self.spool.keep_raw(name, error.raw)
        self.progress.failures.append(Failure.of(error, step, raw))
