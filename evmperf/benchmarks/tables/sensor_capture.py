"""Frames that a camera's sensor delivers, captured into memory.

What lies between the sensor and the video device is set up by the board file's own command: it is
another on each family.
"""

import functools
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
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
    values = {"width": str(width), "height": str(height), "format": code.upper()}
    set_up = functools.reduce(
        lambda text, name: text.replace(f"{{{name}}}", values[name]), values, camera.setup
    )

    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, yavta.TEXT_FILE)
        return [Reading("frame_rate", yavta.frame_rate(text, width, height, code, frames))]

    return [
        *([Prepare("set up", set_up, 30)] if set_up else []),
        Measure(
            "measure",
            yavta.command(camera.device, width, height, code, frames),
            30 + frames / _SLOWEST,
            1 + frames / 30,
            parse=parse,
        ),
    ]


def _profile(resolutions: Sequence[str], frames: int) -> Profile:
    return Profile(
        tuple(
            Case(f"{resolution}|{code}", {"resolution": resolution, "format": code, "frames": frames})
            for resolution in resolutions
            for code in ("nv12", "rgb4")
        )
    )


BENCHMARK = Benchmark(
    name="sensor_capture",
    driver="camera",
    title="Sensor Capture",
    section=("Sensor Capture",),
    metrics=(Metric("frame_rate", Unit.PER_SECOND, Direction.HIGHER, "Fps", low=0.1, high=1000.0),),
    profiles={"full": _profile(("1280x800", "320x240"), 1000), "quick": _profile(("320x240",), 60)},
    place=Place.SHELL,
    steps=_steps,
    tools=("yavta",),
    options=(("camera", "device"), ("camera", "sensor")),
    conditions=lambda board: {key: board.text("camera", key) for key in ("sensor", "device", "setup")},
)
