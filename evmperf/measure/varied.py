"""What a run does on a freshly booted Linux: a variation applied and checked, the control measurement.

A board without the requested variation gives wrong figures, so each failure of it is the lab's. The control
measurement is what no software should change, once a session; no other figure depends on it.
"""

from evmperf.benchmarks import control
from evmperf.benchmarks.step import Plan
from evmperf.benchmarks.tools import control as loop
from evmperf.boards.variation import Variation
from evmperf.measure import shellstep
from evmperf.measure.bench import Clock, Shell, Steps
from evmperf.measure.progress import StepProgress
from evmperf.model.errors import LabError, ToolError
from evmperf.model.facts import Facts
from evmperf.model.results import Failure, Reading, Result

_COMMAND_S = 120
"""Seconds after which a command of a variation counts as hung."""


def apply(variation: Variation, shell: Shell, steps: Steps) -> None:
    """Run the commands of a variation in a freshly booted Linux; raises LabError."""
    for command in variation.commands:
        done = steps.run(shell, command, _COMMAND_S, quiet=True, label="run")
        if done.status:
            lines = done.files.get(shellstep.LOG, "").strip().splitlines()
            raise LabError(
                f"run:{command}: ended with exit status {done.status} on the board"
                f"{f': {lines[-1][:200]}' if lines else ''}"
            )


def check(variation: Variation, command_line: str) -> None:
    """Raise LabError unless the running kernel has the requested arguments."""
    words = command_line.split()
    for word in variation.kernel_arguments.split():
        if word not in words:
            raise LabError(
                f"args:{word}: is not on the running kernel's command line ({command_line}): "
                f"check whether U-Boot overwrites the strategy's kernel_arguments_variable"
            )


def control_measured(
    shell: Shell, facts: Facts, steps: Steps, clock: Clock, profile: str, *, timed: bool
) -> Result | None:
    """Measure it in a board's Linux, and how long the step took unless `timed` is off; None on a machine
    without a loop. Raises BoardError or LabError.
    """
    text = loop.script(facts.machine)
    if not text:
        return None
    progress = StepProgress(control.BENCHMARK, control.CASE, Plan(loop.RUNS))
    started_ns, began = clock.time_ns(), clock.monotonic()
    try:
        output = steps.run(shell, text, 120, label=control.NAME)
        took_s = clock.monotonic() - began
        rounds = [[Reading(control.LOOP.name, ms)] for ms in loop.loop_ms(output.files.get(loop.LOOP, ""))]
        rounds[0] += [Reading(control.STEP.name, took_s)] if timed else []
        if (idle := loop.celsius(output.files.get(loop.TEMPERATURES, ""))) is not None:
            rounds[0].append(Reading(control.IDLE.name, idle))
        for repetition, readings in enumerate(rounds):
            progress.check(readings)
            progress.add(readings, repetition, clock.time_ns())
    except ToolError as error:
        progress.failures.append(Failure.of(error))
    return progress.result(profile, started_ns, clock.monotonic() - began)
