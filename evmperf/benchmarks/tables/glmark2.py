"""glmark2 on the bare display and under the compositor.

The compositor holds the display, so it is stopped for the first and started again after it.
"""

from collections.abc import Callable, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import glmark2

NO_COMPOSITOR = "none"
"""What a board file says of a board whose display nobody holds."""

_STOPPED = f"{STEP_FOLDER}/compositor-stopped"

_FIND_COMPOSITOR = (
    "for socket in /run/wayland-? /run/user/*/wayland-?; do "
    '[ ! -S "$socket" ] || { export XDG_RUNTIME_DIR="${socket%/*}" '
    'WAYLAND_DISPLAY="${socket##*/}"; break; }; done; '
    '[ -n "$WAYLAND_DISPLAY" ] || { echo "no Wayland compositor runs: start it"; exit 3; }; '
)


def _lacks(board: Board, case: Case) -> str:
    without = board.options.graphics.compositor == NO_COMPOSITOR
    if without and case.label == "Glmark2-Wayland":
        return f"{board.file_name} says that the board has no compositor"
    return ""


def _tools(board: Board) -> tuple[str, ...]:
    both = ("glmark2-es2-drm", "glmark2-es2-wayland")
    return both[:1] if board.options.graphics.compositor == NO_COMPOSITOR else both


def _readings(board: Board, scenes: str) -> Callable[[Outputs], list[Reading]]:
    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, glmark2.TEXT_FILE)
        score = glmark2.score(text, scenes, software=board.is_virtual)
        return [Reading("score", score, variant=glmark2.variant(text, scenes))]

    return parse


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    scenes, expect_s = str(case.params["scenes"]), float(case.params["expect_s"])
    backend = case.label.removeprefix("Glmark2-").lower()
    command, parse = glmark2.command(backend, scenes), _readings(board, scenes)
    if backend == "wayland":
        return [
            Measure("measure", _FIND_COMPOSITOR + command, 1800, expect_s, parse=_readings(board, scenes))
        ]
    service = board.options.graphics.compositor
    if service == NO_COMPOSITOR:
        return [Measure("measure", command, 1800, expect_s, parse=parse)]
    return [
        Prepare(
            "prepare",
            f"if systemctl is-active -q {service}; then : >{_STOPPED} && systemctl stop {service}; fi",
            60,
            2,
        ),
        Measure("measure", command, 1800, expect_s, parse=parse),
        CleanUp(
            "clean-up", f"if [ -e {_STOPPED} ]; then systemctl start {service} && rm {_STOPPED}; fi", 60, 2
        ),
    ]


def _profile(scenes: str, expect_s: int) -> Profile:
    return Profile(
        tuple(
            Case(label, {"backend": label, "scenes": scenes, "expect_s": expect_s})
            for label in ("Glmark2-DRM", "Glmark2-Wayland")
        )
    )


BENCHMARK = Benchmark(
    name="glmark2",
    driver="graphics",
    title="Glmark2",
    section=("Graphics SGX/RGX Driver", "Glmark2"),
    metrics=(Metric("score", Unit.SCORE, Direction.HIGHER, "Score", low=1.0, high=100_000.0),),
    profiles={"full": _profile("", 340), "quick": _profile("-b build:duration=2 -b texture:duration=2", 6)},
    place=Place.SHELL,
    steps=_steps,
    board_tools=_tools,
    lacks=_lacks,
    options=(("graphics", "compositor"),),
)
