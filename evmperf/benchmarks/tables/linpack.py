"""Linpack: solving a dense system of linear equations.

TI's definition reads "Unrolled Single Precision" although the guides' text says double; a board
with the other program says so, and the two are not compared.
"""

from evmperf.benchmarks.families.system import perf, program_benchmark
from evmperf.boards.board import Board
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.tools import linpack, standin


def _precision(board: Board) -> str:
    if board.options.system.linpack.startswith(standin.PREFIX):
        return "double"
    return board.options.system.linpack_precision


BENCHMARK = program_benchmark(
    name="linpack",
    title="Linpack",
    metric=perf(Unit.KILOFLOPS, Direction.HIGHER, 100, 1e9),
    labels=("linpack",),
    read=lambda text, _, board: linpack.kflops(text, _precision(board)),
    variant=lambda board: f"{_precision(board)} precision",
)
