"""Whetstone: floating-point arithmetic and library functions."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import whetstone

BENCHMARK = program_benchmark(
    name="whetstone",
    title="Whetstone",
    metric=perf(Unit.MWIPS, Direction.HIGHER, 1, 1e6),
    labels=("whetstone",),
    read=lambda text, _, __: whetstone.mwips(text),
)
