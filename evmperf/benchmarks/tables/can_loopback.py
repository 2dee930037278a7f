"""CAN and CAN FD: frames as fast as they go, sent by cangen and received by candump (can-utils) on the board
itself, in no published guide. A controller is set to its internal loopback; a virtual EVM has the kernel's
vcan, which has no bit rate. No tool says when a frame was sent, so there is no latency.

cangen counts up in its frames' data (`-D i`). candump's log (`-L`) is too long for a console: awk counts on
the board, and prints the first and the last frame with the kernel's receive time stamps.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.families.network import changing, put_back
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools import mpstat
from evmperf.benchmarks.tools._checks import refuse, whole
from evmperf.boards.board import Board
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_CONTROLLER = "can0"
"""The kernel's name of the first controller; all of a SoC are alike."""
_VIRTUAL = "evmperf-can"
_BITRATE, _DATA_BITRATE = 1_000_000, 5_000_000
"""Bit/s, the latter in the data of CAN FD frames."""
_RATES = {"bitrate": str(_BITRATE), "data_bitrate": str(_DATA_BITRATE)}
_TEXT_FILE = "can.txt"
_LOG = "/dev/shm/evmperf-candump"
"""candump's log, on the board and in memory."""
_IDENTIFIER = "123"
_QUIET_MS = 5000
"""candump ends after that long without a frame: frames were lost."""
_FRAME_MEMORY = 1024
"""Maximum bytes that the kernel needs for an unread frame."""
_CLOCK_S = 0.02
"""/proc/uptime has hundredths of a second, and is read twice."""

SHELL = ShellTexts(__file__)
_COUNTED = re.compile(
    r"sent (?P<sent>\d+)\n"
    r"uptime (?P<began>\d+\.\d\d) (?P<ended>\d+\.\d\d)\n"
    r"received (?P<received>\d+)\n"
    r"lost (?P<lost>\d+)\n"
    r"dropped (?P<dropped>\d+)\n"
    r"disordered (?P<disordered>\d+)\n"
    r"unknown (?P<unknown>\d+)\n"
    r"first \((?P<first_s>\d+\.\d{6})\) (?P<first>\d+)\n"
    r"last \((?P<last_s>\d+\.\d{6})\) (?P<last>\d+)\n"
)


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    frames, size, i = int(case.params["frames"]), int(case.params["bytes"]), _interface(board)
    options = ["-g 0 -p 1000 -n", frames, "-I", _IDENTIFIER, "-L", size, "-D i"]
    options += ["-f", "-b"] if size > 8 else []
    # What is sent over vcan the kernel hands to other programs; a controller in loopback mode receives it.
    options += [] if _is_virtual(board) else ["-x"]
    about = {"i": i, "log": _LOG, "sent": f"/sys/class/net/{i}/statistics/tx_packets"}
    about |= {"quiet_ms": str(_QUIET_MS), "text_file": _TEXT_FILE}
    around = mpstat.around(" ".join(map(str, ["cangen", i, *options])))
    counts = {"memory": frames * _FRAME_MEMORY, "frames": frames, "digits": 2 * size}

    def parse(outputs: Outputs) -> list[Reading]:
        rate, loss = transfer(output(outputs, _TEXT_FILE), frames)
        return readings(frame_rate=rate, frame_loss=loss, cpu_load=processor.load(outputs))

    send = SHELL("send", **about, **counts, around=around)
    return [
        changing("prepare", SHELL("virtual" if _is_virtual(board) else "controller", i=i, **_RATES)),
        Measure("measure", send, 60 + frames / 100, 2 + frames / 4000, parse=parse),
        CleanUp("clean-up", f"rm -f {_LOG}", 30, 0.1),
        put_back(),
    ]


def transfer(text: str, frames: int) -> tuple[float, float]:
    """Frames received a second, and the percentage lost of the `frames` sent; raises RefusedOutput."""
    match = whole(_COUNTED, text, "this is not the count of candump's log")
    number = {name: int(match[name]) for name in ("sent", "received", "lost", "first", "last")}
    for name in ("dropped", "disordered", "unknown"):
        refuse(match[name] != "0", f"candump's log has {match[name]} frames {name}", text)
    sent, lost, received, ended = number["sent"], number["lost"], number["received"], number["last"] + 1
    refuse(sent != frames, f"the interface sent {sent} frames, not {frames}", text)
    reason = f"candump received {received} frames and missed {lost} up to the {ended}th of {frames}"
    refuse(received < 2 or received + lost != ended or ended > frames, reason, text)
    # A float has too few digits for today's microseconds.
    took_s = float(Decimal(match["last_s"]) - Decimal(match["first_s"]))
    fits = 0 < took_s <= float(match["ended"]) - float(match["began"]) + _CLOCK_S
    refuse(not fits, f"{took_s:.6f} s between two frames: was the clock set?", text)
    return (received - 1) / took_s, 100.0 * (frames - received) / frames


def _is_virtual(board: Board) -> bool:
    return board.options.can.controller == "vcan"


def _interface(board: Board) -> str:
    return _VIRTUAL if _is_virtual(board) else _CONTROLLER


def _profile(frames: int) -> Profile:
    rows = (("CAN 8", 8), ("CAN FD 64", 64))
    return Profile(tuple(Case(name, {"frame": name, "bytes": size, "frames": frames}) for name, size in rows))


BENCHMARK = Benchmark(
    **declared(__file__)["can_loopback"],
    profiles={"full": _profile(50_000), "quick": _profile(10_000)},
    steps=_steps,
    conditions=lambda board: {"interface": _interface(board), **({} if _is_virtual(board) else _RATES)},
)
