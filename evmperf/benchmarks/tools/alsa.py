"""aplay and arecord (alsa-utils), measured by the kernel's hw_params and status of their stream
(sound/core/pcm.c; Documentation/sound/designs/procfile.rst).
"""

import re

from evmperf.benchmarks.tools import mpstat
from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts

TEXT_FILE = "alsa.txt"
STREAM_FILE = "pcm.txt"
"""The stream's hw_params and two looks at its status, with an empty line between them."""

CHANNELS = 2
FRAME_BITS = CHANNELS * 16
"""Bits of one frame: two channels of S16_LE."""

_SHELL = ShellTexts(__file__)
_SAID = re.compile(
    r"(?:Playing|Recording) raw data '[^']*' : Signed 16 bit Little Endian, Rate \d+ Hz, Stereo"
    r"|Hardware PCM card \d+ .*|Its setup is:|  \w[\w ]*: .*"
)
_RATE_WARNING = re.compile(r"Warning: rate is not accurate \(requested = (\d+)Hz, got = (\d+)Hz\)")
_CLOCK_ERROR = 0.25
"""Relative tolerance of a stream's rate: emulated devices are far off."""
_LOST = re.compile(r"(?:under|over)run!!!")
_TIME = re.compile(r"\d+\.\d{9}")


def command(
    *, capture: bool, device: str, folder: str, rate: int, period: int, settle_s: int, window_s: int
) -> str:
    """Shell text that moves silence or noise as LTP-DDT does, and reads the status twice.

    `device` is an ALSA device without conversion (`hw:0,0`), `folder` its substream's below /proc/asound,
    `period` is in frames. The first look is after `settle_s` seconds, the second `window_s` seconds later.
    """
    program, file = ("arecord", "/dev/null") if capture else ("aplay", "/dev/zero")
    times = {"settle_s": settle_s, "window_s": window_s, "frames": rate * (settle_s + window_s + 2)}
    looks = {"before": mpstat.snapshot(mpstat.STAT_BEFORE), "after": mpstat.snapshot(mpstat.STAT_AFTER)}
    about = {"program": program, "device": device, "from_to": file, "folder": folder, **looks}
    about |= {"stream_file": STREAM_FILE, "text_file": TEXT_FILE}
    return _SHELL("stream", **about, **times, rate=rate, period=period, channels=CHANNELS)


def throughput(printed: str, stream: str, rate: int, period: int) -> float:
    """Throughput in bit/s of a stream between two looks at its status.

    `printed` is the tool's text. Raises RefusedOutput for another rate or period (frames) than asked for,
    lost data (an XRUN restarts the stream), a stream that was not running, and unknown text.
    """
    raw = printed + stream
    if warning := _RATE_WARNING.search(printed):
        raise RefusedOutput(f"the device runs at {warning[2]} Hz instead of {warning[1]} Hz", raw)
    refuse(_LOST.search(printed), f"data was lost: {printed.count('run!!!')} XRUNs", raw)
    refuse(not printed.endswith("\n"), "the tool's output is not whole", raw)
    for line in printed.splitlines():
        refuse(not _SAID.fullmatch(line), f"the tool printed something unexpected: {line[:120]!r}", raw)
    parts = stream.split("\n\n")
    refuse(len(parts) != 3 or not stream.endswith("\n"), "the stream's status is not whole", raw)
    params = _fields(parts[0], raw)
    fixed = {"access": "RW_INTERLEAVED", "format": "S16_LE", "channels": str(CHANNELS)}
    for key, value in {**fixed, "period_size": str(period)}.items():
        refuse(params.get(key) != value, f"the stream has {key} {params.get(key)} instead of {value}", raw)
    runs_at = params.get("rate", "")
    other = f"the device runs at {runs_at or None} Hz instead of {rate} Hz"
    refuse(not re.fullmatch(rf"{rate} \(\d+/\d+\)", runs_at), other, raw)
    before = _status(parts[1], ("RUNNING",), params, raw)
    after = _status(parts[2], ("RUNNING", "DRAINING"), params, raw)
    refuse(before["trigger_time"] != after["trigger_time"], "the stream was restarted: data was lost", raw)
    frames = int(after["hw_ptr"]) - int(before["hw_ptr"])
    seconds = float(after["tstamp"]) - float(before["tstamp"])
    refuse(frames <= 0 or seconds <= 0, f"the stream moved {frames} frames in {seconds:g} s", raw)
    wrong = f"{frames} frames in {seconds:g} s are not {rate} Hz: a clock or a counter is wrong"
    refuse(abs(frames / seconds / rate - 1) > _CLOCK_ERROR, wrong, raw)
    return frames * FRAME_BITS / seconds


def _status(text: str, states: tuple[str, ...], params: dict[str, str], raw: str) -> dict[str, str]:
    """A look at the stream; its available frames must fit its two pointers, which are read a moment later."""
    fields = _fields(text.replace("-----\n", ""), raw)
    refuse(fields.get("state") not in states, f"the stream's state was {fields.get('state')}", raw)
    times = fields.get("trigger_time", ""), fields.get("tstamp", "")
    whole = all(map(_TIME.fullmatch, times)) and fields.get("hw_ptr", "").isdigit()
    refuse(not whole, "the stream's status is not whole", raw)
    with refusing("the stream's status is not whole", raw):
        lost = int(fields.get("xrun_counter", "0"))
        ahead, avail = int(fields["hw_ptr"]) - int(fields["appl_ptr"]), int(fields["avail"])
        size, period = int(params["buffer_size"]), int(params["period_size"])
    refuse(lost, f"data was lost: {lost} XRUNs", raw)
    fits = any(abs(ahead + room - avail) <= period for room in (size, 0))
    refuse(not fits, "the stream's pointers contradict its available frames", raw)
    return fields


def _fields(text: str, raw: str) -> dict[str, str]:
    """`key: value` lines, no other; a stream that is not open is one line, `closed`."""
    refuse(text.strip() == "closed", "the stream was not open", raw)
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        is_field = colon and re.fullmatch(r"\w+ *", key) and key.strip() not in fields
        refuse(not is_field, f"the kernel's text is garbled: {line[:120]!r}", raw)
        fields[key.strip()] = value.strip()
    return fields
