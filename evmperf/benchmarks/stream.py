"""STREAM: memory bandwidth of four simple loops."""

from evmperf.model import Direction
from evmperf.system import perf, program_benchmark
from evmperf.tools import stream
from evmperf.units import Unit

BENCHMARK = program_benchmark(
    name="stream",
    title="Stream",
    metric=perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 1, 1e6),
    labels=("add", "copy", "scale", "triad"),
    read=lambda text, label: stream.best_rate(text, label.capitalize()),
)
