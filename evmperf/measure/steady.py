"""The control measurement: once a session, what no software should change. No other figure depends on it."""

from evmperf.benchmarks import control
from evmperf.benchmarks.step import Plan
from evmperf.measure.bench import Clock, Shell, Steps
from evmperf.measure.progress import StepProgress
from evmperf.model.errors import ToolError
from evmperf.model.facts import Facts
from evmperf.model.results import Failure, Reading, Result
from evmperf.tools import control as loop


def measured(shell: Shell, facts: Facts, steps: Steps, clock: Clock, profile: str) -> Result | None:
    """Measure it in a board's Linux; None on a machine without a loop. Raises BoardError or LabError."""
    text = loop.script(facts.machine)
    if not text:
        return None
    progress = StepProgress(control.BENCHMARK, control.CASE, Plan(loop.RUNS))
    started_ns, began = clock.time_ns(), clock.monotonic()
    try:
        output = steps.run(shell, text, 120, label=control.NAME)
        took_s = clock.monotonic() - began
        found = [[Reading(control.LOOP.name, ms)] for ms in loop.loop_ms(output.files.get(loop.LOOP, ""))]
        found[0].append(Reading(control.STEP.name, took_s))
        if (idle := loop.celsius(output.files.get(loop.TEMPERATURES, ""))) is not None:
            found[0].append(Reading(control.IDLE.name, idle))
        for repetition, readings in enumerate(found):
            progress.check(readings)
            progress.add(readings, repetition, clock.time_ns())
    except ToolError as error:
        progress.failures.append(Failure.of(error))
    return progress.result(profile, started_ns, clock.monotonic() - began)
