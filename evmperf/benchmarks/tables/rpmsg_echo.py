"""Round trips of messages between Linux and the board's other processors, which run echo firmware."""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output, readings
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import rpmsg

_PROCESSORS = {"R5F0_0": 2, "M4F": 9}
"""Numbers of ti-rpmsg-char (rproc_id.h)."""


def _steps(_: Board, case: Case, __: Plan) -> Sequence[Step]:
    processor = _PROCESSORS[str(case.params["processor"])]
    messages, size = int(case.params["messages"]), int(case.params["bytes"])

    def parse(outputs: Outputs) -> list[Reading]:
        text, histogram = output(outputs, rpmsg.TEXT_FILE), output(outputs, rpmsg.HISTOGRAM_FILE)
        average, longest = rpmsg.latencies(text, histogram, processor, messages)
        return readings(average=average, longest=longest)

    command = rpmsg.command(processor, messages, size)
    return [Measure("measure", command, 60 + messages / 500, messages / 3000, parse=parse)]


def _lacks(board: Board, case: Case) -> str:
    name = case.params["processor"]
    if name in board.options.ipc.processors:
        return ""
    return f"{board.file_name}: targets.main.options.ipc.processors does not list {name}"


_ROWS = {"processor": tuple(_PROCESSORS), "bytes": (1, 490)}

BENCHMARK = Benchmark(
    name="rpmsg_echo",
    driver="ipc",
    title="RP Message latency Performance",
    section=("RP Message Inter-Processor Communication (IPC) Latency", "RP Message latency Performance"),
    metrics=tuple(
        Metric(name, Unit.MICROSECOND, Direction.LOWER, f"{title} round trip (usecs)", 0.1, 9e6)
        for name, title in (("average", "Average"), ("longest", "Max"))
    ),
    profiles={
        "full": Profile.crossed(_ROWS, messages=10_000),
        "quick": Profile.crossed(_ROWS, messages=1000),
    },
    steps=_steps,
    tools=("rpmsg_char_benchmark", "chrt"),
    options=(("ipc", "processors"),),
)
