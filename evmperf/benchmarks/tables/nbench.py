"""NBench (BYTEmark): nine of its ten kernels; the guides leave out BITFIELD."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import nbench

BENCHMARK = program_benchmark(
    name="nbench",
    title="NBench",
    metric=perf(Unit.ITERATIONS_PER_SECOND, Direction.HIGHER, 0.001, 1e7),
    labels=(
        "assignment", "fourier", "fp_emulation", "huffman", "idea", "lu_decomposition",
        "neural_net", "numeric_sort", "string_sort",
    ),
    read=lambda text, label: nbench.iterations_per_second(text, label.upper().replace("_", " ")),
    seconds=0.2,
)  # fmt: skip
