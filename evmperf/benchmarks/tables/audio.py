"""Audio captured and played at each sampling rate, by the kernel's hw_params and status of the stream
(sound/core/pcm.c; Documentation/sound/designs/procfile.rst).

On boards without TI's alsa_perf_tests, alsa-utils (aplay, arecord) stand in for it, with the same access,
format, channels and period. Throughput has a target, not a direction: each row accepts its own rate only.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools import ltp_ddt, mpstat
from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
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

_TEXT_FILE = "alsa.txt"
_STREAM_FILE = "pcm.txt"
"""The stream's hw_params and two looks at its status, with an empty line between them."""

_CHANNELS = 2
FRAME_BITS = _CHANNELS * 16
"""Bits of one frame: two channels of S16_LE."""

_SAID = re.compile(
    r"(?:Playing|Recording) raw data '[^']*' : Signed 16 bit Little Endian, Rate \d+ Hz, Stereo"
    r"|Hardware PCM card \d+ .*|Its setup is:|  \w[\w ]*: .*"
)
_RATE_WARNING = re.compile(r"Warning: rate is not accurate \(requested = (\d+)Hz, got = (\d+)Hz\)")
_CLOCK_ERROR = 0.25
"""Relative tolerance of a stream's rate: emulated devices are far off."""
_LOST = re.compile(r"(?:under|over)run!!!")
_TIME = re.compile(r"\d+\.\d{9}")


def _benchmark(name: str, title: str, *, capture: bool) -> Benchmark:
    option, program = ("capture", "arecord") if capture else ("playback", "aplay")

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        rate, window_s = int(case.params["sampling_rate"]), int(case.params["window_s"])
        period = board.options.alsa.period_frames
        device = board.text("alsa", option)
        about = {"device": device, "folder": _folder(board, device, "c" if capture else "p")}
        about |= {"program": program, "from_to": "/dev/null" if capture else "/dev/zero"}
        about |= {"before": mpstat.snapshot(mpstat.STAT_BEFORE), "after": mpstat.snapshot(mpstat.STAT_AFTER)}
        about |= {"stream_file": _STREAM_FILE, "text_file": _TEXT_FILE}
        # The first look is after `settle_s` seconds, the second `window_s` seconds later.
        times = {"settle_s": _SETTLE_S, "window_s": window_s, "frames": rate * (_SETTLE_S + window_s + 2)}
        stream = _SHELL("stream", **about, **times, rate=rate, period=period, channels=_CHANNELS)

        def parse(outputs: Outputs) -> list[Reading]:
            printed, status = output(outputs, _TEXT_FILE), output(outputs, _STREAM_FILE)
            moved = throughput(printed, status, rate, period)
            return readings(throughput=moved, cpu_load=processor.load(outputs))

        return [Measure(option, stream, 2 * window_s + 60, _SETTLE_S + window_s + 3, parse=parse)]

    def ti_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        rate, window_s = int(case.params["sampling_rate"]), int(case.params["window_s"])
        side, frame_bytes = "record" if capture else "playback", FRAME_BITS // 8
        whole = window_s == _TRANSFER_BYTES // (frame_bytes * rate)
        size = _TRANSFER_BYTES if whole else window_s * rate * frame_bytes
        way = {"rate": rate, "period": board.options.alsa.period_frames}
        command = ltp_ddt.stream(side, size, device=board.text("alsa", option), **way)

        def parse(outputs: Outputs) -> list[Reading]:
            printed = output(outputs, _TEXT_FILE)
            moved, load = ltp_ddt.streamed(printed, side, size, *way.values())
            return readings(throughput=moved, cpu_load=load)

        # As TI's script: the codec settles before the next rate.
        text = f'sleep {_TI_SETTLE_S}; {command} >"$OUT/{_TEXT_FILE}" 2>&1'
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
        tools=(program,),
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
    low, high = (lowest * FRAME_BITS * (1 - _TOLERANCE), highest * FRAME_BITS * (1 + _TOLERANCE))
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
    fixed = {"access": "RW_INTERLEAVED", "format": "S16_LE", "channels": str(_CHANNELS)}
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


BENCHMARKS = (
    _benchmark("audio_capture", "Audio Capture", capture=True),
    _benchmark("audio_playback", "Audio Playback", capture=False),
)
