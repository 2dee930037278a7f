"""Frames of a camera's sensor, captured by yavta, which prints their rate."""

import re
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, Plan, Prepare, Step, reading_of
from evmperf.benchmarks.tools._checks import agree, over, refuse, span
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case

_TEXT_FILE = "yavta.txt"
_SLOWEST = 1.0
"""Frames a second; with fewer, a camera counts as hung."""
_FORMATS = {"nv12": ("NV12", 12), "rgb4": ("RGB32", 32)}
"""yavta's names and the bits of a pixel, by the FourCC as guides write it."""
_SET = re.compile(r"Video format: (\w+) \([0-9a-f]{8}\) (\d+)x(\d+) .*")
_FRAME = re.compile(r"(\d+) \(\d+\) \[([-E])\] \S+ (\d+) (\d+) B \d+\.\d{6} \d+\.\d{6} .* fps .*")
_CAPTURED = re.compile(
    r"Captured (\d+) frames in (\d+\.\d{6}) seconds \((\d+\.\d{6}) fps, (\d+\.\d{6}) B/s\)\."
)

_PLANES = re.compile(r"^Device `.*' on `.*' \(driver '.*'\) .*\bwith mplanes\.$", re.MULTILINE)
_RELEASED = re.compile(r"\d+ buffers released\.")

_MICROSECONDS = 2.0
"""Tolerance between the printed time and that of the rates, which yavta rounds separately."""


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    width, height = map(int, str(case.params["resolution"]).split("x"))
    code, frames = str(case.params["format"]), int(case.params["frames"])
    camera = board.options.camera
    set_up = camera.setup
    for name, value in (("width", width), ("height", height), ("format", code.upper())):
        set_up = set_up.replace(f"{{{name}}}", str(value))

    parse = reading_of("frame_rate", _TEXT_FILE, frame_rate, width, height, code, frames)
    capture = (
        f"yavta --capture={frames} --nbufs=4 --size={width}x{height} --format={_FORMATS[code][0]} "
        f'{camera.device} >"$OUT/{_TEXT_FILE}"'
    )
    return [
        *([Prepare("set up", set_up, 30)] if set_up else []),
        Measure("measure", capture, 30 + frames / _SLOWEST, 1 + frames / 30, parse=parse),
    ]


def frame_rate(text: str, width: int, height: int, code: str, frames: int) -> float:
    """Frames a second including the wait for the first; dropped frames lower it. Raises RefusedOutput."""
    name, bits = _FORMATS[code]
    lines = text.splitlines()
    refuse(not lines or not _RELEASED.fullmatch(lines[-1]), "yavta's output is not whole", text)
    formats = [match.groups() for match in map(_SET.fullmatch, lines) if match]
    if formats != [(name, str(width), str(height))]:
        setting = "x".join(formats[-1][1:]) + f" {formats[-1][0]}" if formats else "no format"
        raise RefusedOutput(f"the device captures {setting}, not {width}x{height} {name}", text)
    got = [match.groups() for match in map(_FRAME.fullmatch, lines) if match]
    numbers = [number for number, *_ in got]
    others = numbers != [str(number) for number in range(frames)]
    refuse(others, f"{len(got)} frames are in the log, not {frames} in their order", text)
    refuse(any(flag == "E" for _, flag, *_ in got), "a frame came with an error", text)
    sizes = [int(size) for *_, size in got]
    if len(set(sizes)) != 1 or sizes[0] < width * height * bits // 8:
        raise RefusedOutput(f"the frames have {min(sizes)} to {max(sizes)} bytes", text)
    sums = [match.groups() for match in map(_CAPTURED.fullmatch, lines) if match]
    refuse(len(sums) != 1 or int(sums[0][0]) != frames, "yavta does not print its total time", text)
    _, seconds, rate, byte_rate = sums[0]
    took = span(seconds, units=_MICROSECONDS)
    same = agree(over(float(frames), took), span(rate))
    refuse(not same, f"{frames} frames in {seconds} s are not {rate} a second", text)
    # On a device with several planes yavta adds up wrong bytes (capture, mplanes).
    uncounted = float(byte_rate) == 0 and _PLANES.search(text)
    same = bool(uncounted) or agree(over(float(sum(sizes)), took), span(byte_rate))
    refuse(not same, f"{sum(sizes)} bytes in {seconds} s are not {byte_rate} a second", text)
    return float(rate)


BENCHMARK = Benchmark(**declared(__file__)["sensor_capture"], steps=_steps)
