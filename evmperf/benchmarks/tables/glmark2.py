"""glmark2 on the bare display and under the compositor.

The compositor holds the display, so it is stopped for the first and started again after it.
"""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit
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


_BACKENDS = ("Glmark2-DRM", "Glmark2-Wayland")
_FEW_SCENES = "-b build:duration=2 -b texture:duration=2"

BENCHMARK = Benchmark(
    name="glmark2",
    driver="graphics",
    title="Glmark2",
    section=("Graphics SGX/RGX Driver", "Glmark2"),
    metrics=(Metric("score", Unit.SCORE, Direction.HIGHER, "Score", 1.0, 100_000.0),),
    profiles=Profile.both("backend", _BACKENDS, scenes=("", _FEW_SCENES), expect_s=(340, 6)),
    steps=_steps,
    tools=("glmark2-es2-drm",),
    board_tools=lambda board: () if _has_none(board) else ("glmark2-es2-wayland",),
    lacks=_lacks,
    options=(("graphics", "compositor"),),
)
