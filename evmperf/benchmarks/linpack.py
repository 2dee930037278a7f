"""Linpack: solving a dense system of linear equations."""

from evmperf.model import Direction
from evmperf.system import perf, program_benchmark
from evmperf.tools import linpack
from evmperf.units import Unit

BENCHMARK = program_benchmark(
    name="linpack",
    title="Linpack",
    metric=perf(Unit.KILOFLOPS, Direction.HIGHER, 100, 1e9),
    labels=("linpack",),
    read=lambda text, _: linpack.kflops(text),
)
