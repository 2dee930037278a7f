"""CAN and CAN FD: frames as fast as they go, received by the board itself, in no published guide. A
controller is set to its internal loopback; a virtual EVM has the kernel's vcan, which has no bit rate. No
tool says when a frame was sent, so there is no latency.
"""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.families.network import changing, put_back
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools import can, mpstat
from evmperf.boards.board import Board
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_CONTROLLER = "can0"
"""The kernel's name of the first controller; all of a SoC are alike."""
_VIRTUAL = "evmperf-can"
_BITRATE, _DATA_BITRATE = 1_000_000, 5_000_000
"""Bit/s, the latter in the data of CAN FD frames."""
_RATES = {"bitrate": str(_BITRATE), "data_bitrate": str(_DATA_BITRATE)}
_SHELL = ShellTexts(__file__)


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    frames, size = int(case.params["frames"]), int(case.params["bytes"])
    around, echo = mpstat.around("{send}"), _is_virtual(board)
    send = can.command(_interface(board), frames=frames, size=size, fd=size > 8, echo=echo, around=around)

    def parse(outputs: Outputs) -> list[Reading]:
        rate, loss = can.transfer(output(outputs, can.TEXT_FILE), frames)
        return readings(frame_rate=rate, frame_loss=loss, cpu_load=processor.load(outputs))

    return [
        changing("prepare", _SHELL("virtual" if echo else "controller", i=_interface(board), **_RATES)),
        Measure("measure", send, 60 + frames / 100, 2 + frames / 4000, parse=parse),
        CleanUp("clean-up", f"rm -f {can.LOG}", 30, 0.1),
        put_back(),
    ]


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
