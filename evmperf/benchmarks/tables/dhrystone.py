"""Dhrystone: integer arithmetic and strings, for each second and for each clock cycle.

DMIPS/MHz is computed from the rate and the clock, which is checked against cpufreq: guides publish
a clock of 400 MHz for AM62L, and with it three times the true figure.
"""

from __future__ import annotations

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.families.system import at_full_speed, perf, profiles, program_call, usual_s
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Reading
from evmperf.model.units import Unit
from evmperf.tools import dhrystone, standin

_FILE = "dhrystone.txt"
_RATE = "dhrystone_per_second"
_ROWS = {
    "cpu_clock": perf(Unit.MEGAHERTZ, Direction.NONE, 10, 10_000),
    "dhrystone_per_mhz": perf(Unit.DMIPS_PER_MEGAHERTZ, Direction.HIGHER, 0.05, 20),
    _RATE: perf(Unit.DHRYSTONES_PER_SECOND, Direction.HIGHER, 1e4, 1e9),
}


def _steps(board: Board, case: Case, _: Plan) -> list[Step]:
    program = board.options.system.dhrystone

    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, _FILE)
        if program.startswith(standin.PREFIX):
            rate = standin.figure(text, program, _RATE, str(Unit.DHRYSTONES_PER_SECOND))
        else:
            rate = dhrystone.per_second(text)
        clock = dhrystone.clock_mhz(output(outputs, dhrystone.CLOCK_FILE), text)
        values = {
            "cpu_clock": clock,
            "dhrystone_per_mhz": rate / dhrystone.VAX_DHRYSTONES / clock,
            _RATE: rate,
        }
        return [Reading("perf", values[case.label])]

    call = dhrystone.watched(program_call(program, case, _FILE))
    expect_s = usual_s(program, case, len(_ROWS))
    return at_full_speed(Measure("measure", call, 1800, expect_s, parse=parse, shared="dhrystone"))


BENCHMARK = Benchmark(
    name="dhrystone",
    driver="system",
    title="Dhrystone",
    section=("System Benchmarks", "Dhrystone"),
    metrics=(_ROWS["cpu_clock"],),  # of the first row; each has its own
    profiles=profiles({label: (metric,) for label, metric in _ROWS.items()}, 0.5),
    place=Place.SHELL,
    steps=_steps,
    tools=("taskset",),
    board_tools=lambda board: (board.options.system.dhrystone,),
    version=2,
    conditions=lambda _: {VARIANT: processor.PINNED},
)
