"""Media: audio captured and played at each sampling rate, frames of a camera's sensor captured, and glmark2
on the bare display and under the compositor, which holds the display: it is stopped for the first.

On boards without TI's alsa_perf_tests, alsa-utils stand in for it, with the same access, format, channels and
period. Throughput has a target, not a direction: each row accepts its own rate only.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import (
    CleanUp,
    Measure,
    Outputs,
    Plan,
    Prepare,
    Step,
    output,
    reading_of,
    readings,
)
from evmperf.benchmarks.tools import alsa, glmark2, ltp_ddt, yavta
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
_DECLARED = declared(__file__)
RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000)
"""Hz."""

_TRANSFER_BYTES = 10 << 20
_SETTLE_S = 1
_TI_SETTLE_S = 2
_QUICK_RATES = (32000, 44100, 48000)
_QUICK_WINDOW_S = 3
_TOLERANCE = 0.04
"""Less than half of the 8 % between the nearest two of RATES. A look at the stream is exact to one
period, 1.1 % of 3 s for 1024 frames at 32000 Hz; a busy virtual EVM looks late.
"""


def _benchmark(name: str, title: str, *, capture: bool) -> Benchmark:
    option = "capture" if capture else "playback"

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        rate, window_s = int(case.params["sampling_rate"]), int(case.params["window_s"])
        period = board.options.alsa.period_frames
        device = board.text("alsa", option)
        way: dict[str, Any] = {"device": device, "folder": _folder(board, device, "c" if capture else "p")}
        way |= {"rate": rate, "period": period, "settle_s": _SETTLE_S, "window_s": window_s}
        stream = alsa.command(capture=capture, **way)

        def parse(outputs: Outputs) -> list[Reading]:
            printed, status = output(outputs, alsa.TEXT_FILE), output(outputs, alsa.STREAM_FILE)
            throughput = alsa.throughput(printed, status, rate, period)
            return readings(throughput=throughput, cpu_load=processor.load(outputs))

        return [Measure(option, stream, 2 * window_s + 60, _SETTLE_S + window_s + 3, parse=parse)]

    def ti_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        rate, window_s = int(case.params["sampling_rate"]), int(case.params["window_s"])
        side, frame_bytes = "record" if capture else "playback", alsa.FRAME_BITS // 8
        whole = window_s == _TRANSFER_BYTES // (frame_bytes * rate)
        size = _TRANSFER_BYTES if whole else window_s * rate * frame_bytes
        way = {"rate": rate, "period": board.options.alsa.period_frames}
        command = ltp_ddt.stream(side, size, device=board.text("alsa", option), **way)

        def parse(outputs: Outputs) -> list[Reading]:
            printed = output(outputs, alsa.TEXT_FILE)
            throughput, load = ltp_ddt.streamed(printed, side, size, *way.values())
            return readings(throughput=throughput, cpu_load=load)

        # As TI's script: the codec settles before the next rate.
        text = f'sleep {_TI_SETTLE_S}; {command} >"$OUT/{alsa.TEXT_FILE}" 2>&1'
        return [Measure(option, text, 2 * window_s + 60, window_s + 6, parse=parse)]

    own = Benchmark(
        name=name,
        driver="alsa",
        title=title,
        section=("ALSA SoC Audio Driver",),
        metrics=_metrics(min(RATES), max(RATES)),
        profiles={
            "full": Profile(tuple(_case(rate, _TRANSFER_BYTES // (4 * rate)) for rate in RATES)),
            "quick": Profile(tuple(_case(rate, _QUICK_WINDOW_S) for rate in _QUICK_RATES)),
        },
        steps=steps,
        tools=("arecord" if capture else "aplay",),
        options=(("alsa", option), ("alsa", "period_frames")),
        conditions=lambda board: {
            option: board.text("alsa", option),
            VARIANT: f"periods of {board.options.alsa.period_frames} frames",
        },
    )
    return replace(own, ti=replace(own, steps=ti_steps, tools=(ltp_ddt.AUDIO,)))


def _case(rate: int, window_s: int) -> Case:
    params = {"sampling_rate": rate, "window_s": window_s}
    return Case(str(rate), params, _metrics(rate, rate))


def _metrics(lowest: int, highest: int) -> tuple[Metric, ...]:
    low, high = (lowest * alsa.FRAME_BITS * (1 - _TOLERANCE), highest * alsa.FRAME_BITS * (1 + _TOLERANCE))
    throughput = Metric("throughput", Unit.BIT_PER_SECOND, Direction.NONE, "Throughput", low, high)
    return (throughput, percentage("cpu_load", "CPU Load"))


def _folder(board: Board, device: str, direction: str) -> str:
    """The kernel's folder of an ALSA device: hw:0,1 and p (playback) is card0/pcm1p/sub0."""
    plugin, colon, address = device.partition(":")
    card, _, number = address.partition(",")
    if plugin != "hw" or not colon or not card or not (number or "0").isdigit():
        raise UsageError(
            f"{board.file_name}: targets.main.options.alsa: {device!r} is not a device without "
            "conversion: write hw:CARD,DEVICE with the numbers or names of `aplay -l`"
        )
    name = f"card{card}" if card.isdigit() else card
    return f"/proc/asound/{name}/pcm{number or 0}{direction}/sub0"


_SLOWEST = 1.0
"""Frames a second; with fewer, a camera counts as hung."""


def _capture_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    width, height = map(int, str(case.params["resolution"]).split("x"))
    code, frames = str(case.params["format"]), int(case.params["frames"])
    camera = board.options.camera
    set_up = camera.setup
    for name, value in (("width", width), ("height", height), ("format", code.upper())):
        set_up = set_up.replace(f"{{{name}}}", str(value))

    parse = reading_of("frame_rate", yavta.TEXT_FILE, yavta.frame_rate, width, height, code, frames)
    capture = yavta.command(camera.device, width, height, code, frames)
    return [
        *([Prepare("set up", set_up, 30)] if set_up else []),
        Measure("measure", capture, 30 + frames / _SLOWEST, 1 + frames / 30, parse=parse),
    ]


_NO_COMPOSITOR = "none"
"""The board file's word for a board without a compositor."""
_STOPPED = f"{STEP_FOLDER}/compositor-stopped"


def _has_none(board: Board) -> bool:
    return board.options.graphics.compositor == _NO_COMPOSITOR


def _no_compositor(board: Board, case: Case) -> str:
    lost = _has_none(board) and case.label == "Glmark2-Wayland"
    return f"{board.file_name} says that the board has no compositor" if lost else ""


def _draw_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
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


BENCHMARKS = (
    _benchmark("audio_capture", "Audio Capture", capture=True),
    _benchmark("audio_playback", "Audio Playback", capture=False),
    Benchmark(**_DECLARED["sensor_capture"], steps=_capture_steps),
    Benchmark(
        **_DECLARED["glmark2"],
        steps=_draw_steps,
        board_tools=lambda board: () if _has_none(board) else ("glmark2-es2-wayland",),
        lacks=_no_compositor,
    ),
)
