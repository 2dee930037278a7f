"""The processor under a benchmark: its load, which CPU, and cpufreq's governor, which is put back.

TI's test definitions pin single-threaded programs to CPU 0 and set the performance governor.
"""

from collections.abc import Callable
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Prepare, output
from evmperf.benchmarks.tools import mpstat
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import VARIANT, Case, Direction, Metric
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

CPU = 0
GOVERNOR = "performance"

PINNED = f"CPU {CPU}, {GOVERNOR} governor"
UNPINNED = f"all CPUs, {GOVERNOR} governor"
"""Variants of a result; boards without cpufreq have but one clock, which is its performance."""

_SHELL = ShellTexts(__file__)
_SAVED = f"{STEP_FOLDER}/governors"
PREPARE = Prepare("governor", _SHELL("prepare", saved=_SAVED, governor=GOVERNOR), 30, 0.2)
"""The step that sets every CPU's governor, after putting back an interrupted run's."""
PUT_BACK = CleanUp("governor-back", _SHELL("put_back", saved=_SAVED), 30, 0.2)
"""The step that gives every CPU its governor again, whatever happened."""


def governed(
    measure: Callable[[Board, Case], Measure],
    variant: Callable[[Board], str] = lambda board: UNPINNED,
    **more: Any,
) -> Benchmark:
    """A table whose rows are one step under the performance governor."""
    return Benchmark(
        **more,
        steps=lambda board, case, _: [PREPARE, measure(board, case), PUT_BACK],
        conditions=lambda board: {VARIANT: variant(board)},
    )


def perf(unit: Unit, better: Direction, low: float, high: float) -> Metric:
    """The column `perf` of a system benchmark, which all of them have."""
    return Metric("perf", unit, better, "perf", low, high)


def pinned(command: str) -> str:
    """Shell text that runs a program and all it starts on CPU 0."""
    return f"taskset -c {CPU} {command}"


def load(outputs: Outputs) -> float:
    """CPU load in percent between the two snapshots of `mpstat.around`; raises RefusedOutput."""
    return mpstat.stat_load(output(outputs, mpstat.STAT_BEFORE), output(outputs, mpstat.STAT_AFTER))
