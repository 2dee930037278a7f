"""Linpack: solving a dense system of linear equations."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import linpack

BENCHMARK = program_benchmark(
    name="linpack",
    title="Linpack",
    metric=perf(Unit.KILOFLOPS, Direction.HIGHER, 100, 1e9),
    labels=("linpack",),
    read=lambda text, _: linpack.kflops(text),
)
