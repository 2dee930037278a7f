"""glmark2 on the bare display and under the compositor.

The compositor holds the display, so it is stopped for the first and started again after it.
"""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.tools import glmark2

_NO_COMPOSITOR = "none"
"""The board file's word for a board without a compositor."""

_STOPPED = f"{STEP_FOLDER}/compositor-stopped"
_SHELL = ShellTexts(__file__)


def _has_none(board: Board) -> bool:
    return board.options.graphics.compositor == _NO_COMPOSITOR


def _lacks(board: Board, case: Case) -> str:
    lost = _has_none(board) and case.label == "Glmark2-Wayland"
    return f"{board.file_name} says that the board has no compositor" if lost else ""


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    scenes, expect_s = str(case.params["scenes"]), float(case.params["expect_s"])
    backend = case.label.removeprefix("Glmark2-").lower()
    command, service = glmark2.command(backend, scenes), board.options.graphics.compositor
    if backend == "wayland":
        command = f"{_SHELL('find')}; {command}"

    def parse(outputs: Outputs) -> list[Reading]:
        on_cpu = board.options.graphics.renderer == "software"
        drawn = glmark2.drawing(output(outputs, glmark2.TEXT_FILE), scenes, on_cpu)
        return [Reading("score", drawn.score, variant=drawn.variant)]

    measure = Measure("measure", command, 1800, expect_s, parse=parse)
    if backend == "wayland" or _has_none(board):
        return [measure]
    stop, start = (_SHELL(name, service=service, stopped=_STOPPED) for name in ("stop", "start"))
    return [Prepare("prepare", stop, 60, 2), measure, CleanUp("clean-up", start, 60, 2)]


BENCHMARK = Benchmark(
    **declared(__file__)["glmark2"],
    steps=_steps,
    board_tools=lambda board: () if _has_none(board) else ("glmark2-es2-wayland",),
    lacks=_lacks,
)
