"""Round trips of messages between Linux and the board's other processors, which run echo firmware:
rpmsg_char_benchmark (ti-rpmsg-char), with a histogram.
"""

import re
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, unlisted
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools._checks import refuse
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading

_TEXT_FILE = "rpmsg.txt"
_HISTOGRAM_FILE = "histogram.txt"
_PROCESSORS = {"R5F0_0": 2, "M4F": 9}
"""Numbers of ti-rpmsg-char (rproc_id.h)."""
_PRIORITY = 50
"""SCHED_FIFO: that of threaded interrupt handlers (the default of Linux)."""
_PRINTED = re.compile(
    r"Exchanging (\d+) messages with rpmsg device \S+ on rproc id (\d+) \.\.\.\n+"
    r"Communicated (\d+) messages successfully on \S+\n+"
    r"Total execution time for the test: (\d+) seconds\n"
    r"Average round-trip latency: (\d+)\nWorst-case round-trip latency: (\d+)\n"
    r"Histogram data at histogram\.txt\nTEST STATUS: PASSED\n\Z"
)
_LINE = re.compile(r"(\d+) , (\d+)")


def _steps(_: Board, case: Case, __: Plan) -> Sequence[Step]:
    processor = _PROCESSORS[str(case.params["processor"])]
    messages, size = int(case.params["messages"]), int(case.params["bytes"])

    def parse(outputs: Outputs) -> list[Reading]:
        text, histogram = output(outputs, _TEXT_FILE), output(outputs, _HISTOGRAM_FILE)
        average, longest = latencies(text, histogram, processor, messages)
        return readings(average=average, longest=longest)

    command = (
        f'cd "$OUT" && chrt -f {_PRIORITY} rpmsg_char_benchmark -r {processor} -n {messages} -m {size} '
        f'>"$OUT/{_TEXT_FILE}" 2>&1 || {{ tail -n 3 {_TEXT_FILE}; exit 3; }}; '
        f"sed -i '/ 0$/d' \"$OUT/{_HISTOGRAM_FILE}\""
    )
    return [Measure("measure", command, 60 + messages / 500, messages / 3000, parse=parse)]


def latencies(text: str, histogram: str, processor: int, messages: int) -> tuple[float, float]:
    """Mean and longest round trip in microseconds, which the histogram bears out; raises RefusedOutput."""
    match = _PRINTED.search(text)
    lines = [_LINE.fullmatch(line) for line in histogram.splitlines()]
    if not match or not lines or not histogram.endswith("\n"):
        raise RefusedOutput("rpmsg_char_benchmark did not come to its end", text + histogram)
    asked, remote, done, _, mean, longest = map(int, match.groups())
    other = (asked, done, remote) != (messages, messages, processor)
    refuse(other, f"{done} messages went to the processor {remote}, not {messages}", text)
    counts = {int(line[1]): int(line[2]) for line in lines if line}
    other = len(counts) != len(lines) or sum(counts.values()) != messages or max(counts) != longest
    refuse(other, "the histogram does not hold the messages of the test", text + histogram)
    exact = sum(us * count for us, count in counts.items()) / messages
    refuse(int(exact) != mean, f"the histogram's mean is {exact:.2f} us, not {mean}", text + histogram)
    return exact, float(longest)


BENCHMARK = Benchmark(
    **declared(__file__)["rpmsg_echo"],
    steps=_steps,
    lacks=lambda board, case: unlisted(board, "ipc", "processors", str(case.params["processor"])),
)
