"""STREAM: memory bandwidth of four simple loops."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.benchmarks.step import Outputs
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import stream


def _cached(text: str, outputs: Outputs) -> str:
    # A stand-in says nothing of its arrays.
    known = outputs.get(stream.CACHES_FILE, "") if "STREAM version" in text else ""
    return stream.cached(text, known) if known else ""


BENCHMARK = program_benchmark(
    name="stream",
    title="Stream",
    metric=perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 1, 1e6),
    labels=("add", "copy", "scale", "triad"),
    read=lambda text, label, _: stream.best_rate(text, label.capitalize()),
    beside=(stream.CACHES, _cached),
)
