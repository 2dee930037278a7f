"""STREAM 5.10 (`stream_c`, McCalpin's): its table of best rates."""

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.units import KIBIBYTE, MEGABYTE
from evmperf.tools import _twice
from evmperf.tools._rounding import agree, over, span

_ROW = re.compile(
    r"^(?=.{23}  .{11}  .{11}  .{11}$)"
    r"(\w+): +(\d+\.\d) +\d+\.\d{6} +(\d+\.\d{6}) +\d+\.\d{6}$",
    re.MULTILINE,
)
_SIZE = re.compile(r"^Array size = (\d+) \(elements\), Offset = \d+ \(elements\)$", re.MULTILINE)
_ELEMENT = re.compile(r"^This system uses (\d+) bytes per array element\.$", re.MULTILINE)
_ARRAYS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Number of arrays that each kernel accesses."""


CACHES_FILE = "caches.txt"
CACHES = _twice.command("cat /sys/devices/system/cpu/cpu*/cache/index*/size 2>/dev/null", CACHES_FILE)
"""Shell text that puts the sizes of all caches beside what STREAM prints."""
_CACHE = re.compile(r"^(\d+)K$", re.MULTILINE)
_TIMES = 4
"""How many times as large as the last cache each array must be (stream.c, instructions 1)."""


def cached(text: str, caches: str) -> str:
    """The influence of caches on the rates, in words: "" where the arrays are as large as STREAM
    demands, or the kernel does not know its caches.

    Raises RefusedOutput if the arrays fit into the last cache, which is then what was measured.
    """
    best_rate(text, "Copy")  # which the arrays' size makes
    array = int(_only(_SIZE, text)) * int(_only(_ELEMENT, text))
    last = max((int(size) * KIBIBYTE for size in _CACHE.findall(_twice.read(caches))), default=0)
    if 3 * array <= last:
        raise RefusedOutput(
            f"STREAM's arrays of {array} bytes fit into the last cache of {last} bytes: build it "
            f"with -DSTREAM_ARRAY_SIZE={_TIMES * last // 8}",
            text,
        )
    if array < _TIMES * last:
        return f"arrays of {array / MEGABYTE:g} MB with a last cache of {last / MEGABYTE:g} MB"
    return ""


def _only(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.findall(text)
    if len(found) != 1:
        raise RefusedOutput("STREAM does not say how large its arrays are", text)
    return str(found[0])


def best_rate(text: str, kernel: str) -> float:
    """The column "Best Rate MB/s" of one kernel, in MB/s (10^6 bytes).

    Raises RefusedOutput unless all four rows are there, each with the rate that follows from the
    arrays' size and its shortest time, and STREAM found its arrays right.
    """
    found = _ROW.findall(text)
    if tuple(name for name, *_ in found) != tuple(_ARRAYS):
        raise RefusedOutput("STREAM's table does not have its four rows", text)
    validated = re.findall(r"^Solution Validates: .* on all three arrays$", text, re.MULTILINE)
    if "Best Rate MB/s" not in text or len(validated) != 1:
        raise RefusedOutput("STREAM does not say that its arrays are right", text)
    array = int(_only(_SIZE, text)) * int(_only(_ELEMENT, text))
    rates = {name: (rate, shortest) for name, rate, shortest in found}
    rate, shortest = rates[kernel]
    if float(rate) <= 0:
        raise RefusedOutput("STREAM measured nothing: zero", text)
    moved = _ARRAYS[kernel] * array / MEGABYTE
    if not agree(span(rate), over(moved, span(shortest))):
        raise RefusedOutput(
            f"STREAM's {kernel} of {rate} MB/s does not match {moved:g} MB in {shortest} s", text
        )
    return float(rate)
