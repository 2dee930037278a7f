"""Whetstone: floating-point arithmetic and library functions."""

from evmperf.model import Direction
from evmperf.system import perf, program_benchmark
from evmperf.tools import whetstone
from evmperf.units import Unit

BENCHMARK = program_benchmark(
    name="whetstone",
    title="Whetstone",
    metric=perf(Unit.MWIPS, Direction.HIGHER, 1, 1e6),
    labels=("whetstone",),
    read=lambda text, _: whetstone.mwips(text),
)
