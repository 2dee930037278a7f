"""Frames of a camera's sensor captured into memory; the board file's own command sets up the path between."""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile, noted
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import yavta

_SLOWEST = 1.0
"""Frames a second; with fewer, a camera counts as hung."""


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    width, height = map(int, str(case.params["resolution"]).split("x"))
    code, frames = str(case.params["format"]), int(case.params["frames"])
    camera = board.options.camera
    set_up = camera.setup
    for name, value in (("width", width), ("height", height), ("format", code.upper())):
        set_up = set_up.replace(f"{{{name}}}", str(value))

    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, yavta.TEXT_FILE)
        return [Reading("frame_rate", yavta.frame_rate(text, width, height, code, frames))]

    capture = yavta.command(camera.device, width, height, code, frames)
    return [
        *([Prepare("set up", set_up, 30)] if set_up else []),
        Measure("measure", capture, 30 + frames / _SLOWEST, 1 + frames / 30, parse=parse),
    ]


def _profile(resolutions: Sequence[str], frames: int) -> Profile:
    return Profile.crossed({"resolution": resolutions, "format": ("nv12", "rgb4")}, frames=frames)


BENCHMARK = Benchmark(
    name="sensor_capture",
    driver="camera",
    title="Sensor Capture",
    section=("Sensor Capture",),
    metrics=(Metric("frame_rate", Unit.PER_SECOND, Direction.HIGHER, "Fps", 0.1, 1000.0),),
    profiles={"full": _profile(("1280x800", "320x240"), 1000), "quick": _profile(("320x240",), 60)},
    steps=_steps,
    tools=("yavta",),
    options=(("camera", "device"), ("camera", "sensor")),
    conditions=noted("camera", "sensor", "device", "setup"),
)
