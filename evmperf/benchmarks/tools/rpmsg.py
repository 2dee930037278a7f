"""rpmsg_char_benchmark (ti-rpmsg-char): round trips of messages to a processor's echo firmware, with a
histogram."""

import re

from evmperf.benchmarks.tools._checks import refuse
from evmperf.model.errors import RefusedOutput

TEXT_FILE = "rpmsg.txt"
HISTOGRAM_FILE = "histogram.txt"

_PRIORITY = 50
"""SCHED_FIFO: that of threaded interrupt handlers (the default of Linux)."""
_TEXT = re.compile(
    r"Exchanging (\d+) messages with rpmsg device \S+ on rproc id (\d+) \.\.\.\n+"
    r"Communicated (\d+) messages successfully on \S+\n+"
    r"Total execution time for the test: (\d+) seconds\n"
    r"Average round-trip latency: (\d+)\nWorst-case round-trip latency: (\d+)\n"
    r"Histogram data at histogram\.txt\nTEST STATUS: PASSED\n\Z"
)
_LINE = re.compile(r"(\d+) , (\d+)")


def command(processor: int, messages: int, size: int) -> str:
    """Shell text that sends messages of `size` bytes to a processor (its number in rproc_id.h)."""
    return (
        f'cd "$OUT" && chrt -f {_PRIORITY} rpmsg_char_benchmark -r {processor} -n {messages} -m {size} '
        f'>"$OUT/{TEXT_FILE}" 2>&1 || {{ tail -n 3 {TEXT_FILE}; exit 3; }}; '
        f"sed -i '/ 0$/d' \"$OUT/{HISTOGRAM_FILE}\""
    )


def latencies(text: str, histogram: str, processor: int, messages: int) -> tuple[float, float]:
    """Mean and longest round trip in microseconds, which the histogram bears out; raises RefusedOutput."""
    match = _TEXT.search(text)
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
