"""Runs the steps of a case in order."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evmperf.benchmarks.step import (
    CleanUp,
    Command,
    Measure,
    MeasurePower,
    Outputs,
    Prepare,
    Search,
    Step,
    Trial,
    Where,
    next_trial,
)
from evmperf.measure.bench import Bench, Clock
from evmperf.measure.executions import Execution, Executions
from evmperf.measure.progress import StepProgress
from evmperf.model.errors import EvmperfError, RefusedOutput, ToolError
from evmperf.model.results import Failure, Reading
from evmperf.runs.spool import Spool

Perform = Callable[[Command, StepProgress], Outputs]
"""Runs a command on its machine; raises its failure."""


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
                self._leave_tester(steps)
                raise

    def _leave_tester(self, steps: Iterator[Step]) -> None:
        """Clean up the tester after the board was lost; the board itself cannot be cleaned up."""
        for step in steps:
            if isinstance(step, CleanUp) and step.where is Where.TESTER:
                with contextlib.suppress(EvmperfError):
                    self.perform(step, self.progress)

    def _do(self, step: Step) -> None:
        if isinstance(step, Search):
            self._search(step)
            return
        done, readings = self._carry_out(step)
        if not isinstance(step, Measure):
            return
        if isinstance(step, MeasurePower):
            self.progress.conditions["meter"] = self.bench.meter().identity()
        self.progress.add(readings, step.repetition, done.ended_ns)
        self._keep_raw(step, done)

    def _search(self, search: Search) -> None:
        trials = search.begin()
        trial, found = next_trial(trials)
        while trial:
            try:
                done, readings = self._carry_out(trial)
            except ToolError as error:
                self._note_failure(trial.name, error)
                trials.close()
                return
            self.progress.add_trial(trial, readings)
            self._keep_raw(trial, done)
            trial, found = next_trial(trials, readings)
        self.progress.check(found)
        self.progress.add(found, 0, self.clock.time_ns())

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
        done = self.executions.get(key, lambda: self.perform(step, self.progress))
        readings = step.parse(done.outputs) if isinstance(step, Measure | Trial) else []
        if isinstance(step, Measure):
            self.progress.check(readings, "\n".join(done.outputs.values()))
        return done, readings

    def _key(self, step: Command) -> str:
        """The key under which a step's execution is shared, one per round."""
        key, rounds = self.progress.benchmark.shared_key(step), self.progress.rounds
        return f"{key} round {rounds + 1}" if key and rounds else key

    def _note_failure(self, step: str, error: ToolError) -> None:
        raw = ""
        if isinstance(error, RefusedOutput) and error.raw:
            name = self.progress.file_name(f"{step}.refused{len(self.progress.failures)}")
            with contextlib.suppress(RefusedOutput):  # cleaning up goes on without it
                raw = self.spool.keep_raw(name, error.raw)
        self.progress.failures.append(Failure.of(error, step, raw))
