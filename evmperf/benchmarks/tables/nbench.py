"""NBench (BYTEmark): nine of its ten kernels; the guides leave out BITFIELD."""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.boards.board import Board
from evmperf.model.results import Direction, Reading
from evmperf.model.units import Unit
from evmperf.tools import nbench


def _reading(text: str, label: str, _: Board) -> Reading:
    kernel = label.upper().replace("_", " ")
    certain = nbench.is_certain(text, kernel)
    return Reading(
        "perf",
        nbench.iterations_per_second(text, kernel),
        mark="" if certain else "not 95 % certain, says NBench",
    )


BENCHMARK = program_benchmark(
    name="nbench",
    title="NBench",
    metric=perf(Unit.ITERATIONS_PER_SECOND, Direction.HIGHER, 0.001, 1e7),
    labels=(
        "assignment",
        "fourier",
        "fp_emulation",
        "huffman",
        "idea",
        "lu_decomposition",
        "neural_net",
        "numeric_sort",
        "string_sort",
    ),
    read=_reading,
    seconds=0.2,
)
