"""yavta: capturing frames from a video device, and the rate at which they came."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput
from evmperf.tools._rounding import agree, over, span

TEXT_FILE = "yavta.txt"

_FORMATS = {"nv12": "NV12", "rgb4": "RGB32", "yuyv": "YUYV"}
"""yavta's names of formats by their FourCC, as guides have it."""
_SET = re.compile(r"Video format: (\w+) \([0-9a-f]{8}\) (\d+)x(\d+) .*")
_FRAME = re.compile(r"(\d+) \(\d+\) \[(.)\] \w+ (\d+) (\d+) B .* fps .*")
_CAPTURED = re.compile(
    r"Captured (\d+) frames in (\d+\.\d+) seconds \((\d+\.\d+) fps, (\d+\.\d+) B/s\)\."
)


def command(device: str, width: int, height: int, code: str, frames: int) -> str:
    """Shell text that captures so many frames of a format, by its FourCC in small letters."""
    return (
        f"yavta --capture={frames} --nbufs=4 --size={width}x{height} --format={_FORMATS[code]} "
        f'{device} >"$OUT/{TEXT_FILE}"'
    )


def frame_rate(text: str, width: int, height: int, code: str, frames: int) -> float:
    """Frames a second; raises RefusedOutput for another format than asked for, frames with errors
    or out of turn, and sums that do not agree.
    """
    lines = text.splitlines()
    formats = [match.groups() for match in map(_SET.fullmatch, lines) if match]
    if formats != [(_FORMATS[code], str(width), str(height))]:
        there = "x".join(formats[-1][1:]) + f" {formats[-1][0]}" if formats else "no format"
        raise RefusedOutput(f"the device captures {there}, not {width}x{height} {code}", text)
    got = [match.groups() for match in map(_FRAME.fullmatch, lines) if match]
    if [number for number, *_ in got] != [str(number) for number in range(frames)]:
        raise RefusedOutput(f"{len(got)} frames are in the log, not {frames} in their turn", text)
    if any(flag == "E" for _, flag, *_ in got):
        raise RefusedOutput("a frame came with an error", text)
    sums = [match.groups() for match in map(_CAPTURED.fullmatch, lines) if match]
    if len(sums) != 1 or int(sums[0][0]) != frames:
        raise RefusedOutput("yavta does not say how long it took", text)
    count, seconds, rate, byte_rate = sums[0]
    size = sum(int(number) for *_, number in got)
    if not agree(over(float(count), span(seconds)), span(rate)):
        raise RefusedOutput(f"{count} frames in {seconds} s are not {rate} a second", text)
    if not agree(over(float(size), span(seconds)), span(byte_rate)):
        raise RefusedOutput(f"{size} bytes in {seconds} s are not {byte_rate} a second", text)
    return float(rate)
