"""STREAM: memory bandwidth of four simple loops."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import stream

BENCHMARK = program_benchmark(
    name="stream",
    title="Stream",
    metric=perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 1, 1e6),
    labels=("add", "copy", "scale", "triad"),
    read=lambda text, label, _: stream.best_rate(text, label.capitalize()),
)
