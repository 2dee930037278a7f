"""STREAM 5.10 (`stream_c`, McCalpin's): its table of best rates."""

import re

from evmperf.model.units import KIBIBYTE, MEGABYTE
from evmperf.tools._checks import only, read_twice, refuse, twice
from evmperf.tools._rounding import agree, over, span

_ROW = re.compile(
    r"^(?=.{23}  .{11}  .{11}  .{11}$)"
    r"(\w+): +(\d+\.\d) +\d+\.\d{6} +(\d+\.\d{6}) +\d+\.\d{6}$",
    re.MULTILINE,
)
_SIZE = re.compile(r"^Array size = (\d+) \(elements\), Offset = \d+ \(elements\)$", re.MULTILINE)
_ELEMENT = re.compile(r"^This system uses (\d+) bytes per array element\.$", re.MULTILINE)
_VALIDATED = re.compile(r"^Solution Validates: .* on all three arrays$", re.MULTILINE)
_ARRAYS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Number of arrays that each kernel accesses."""


CACHES_FILE = "caches.txt"
CACHES = twice("cat /sys/devices/system/cpu/cpu*/cache/index*/size 2>/dev/null", CACHES_FILE)
"""Shell text that puts the sizes of all caches beside what STREAM prints."""
_CACHE = re.compile(r"^(\d+)K$", re.MULTILINE)
_TIMES = 4
"""How many times as large as the last cache each array must be (stream.c, instructions 1)."""


def cached(text: str, caches: str) -> str:
    """The influence of caches in words, "" for large arrays; arrays that fit into the last are refused."""
    best_rate(text, "Copy")  # which the arrays' size makes
    array = _array_bytes(text)
    last = max((int(size) * KIBIBYTE for size in _CACHE.findall(read_twice(caches))), default=0)
    small = (
        f"STREAM's arrays of {array} bytes fit into the last cache of {last} bytes: build it "
        f"with -DSTREAM_ARRAY_SIZE={_TIMES * last // 8}"
    )
    refuse(3 * array <= last, small, text)
    if array < _TIMES * last:
        return f"arrays of {array / MEGABYTE:g} MB with a last cache of {last / MEGABYTE:g} MB"
    return ""


def _array_bytes(text: str) -> int:
    elements, size = (
        only(form, text, "STREAM does not give the size of its arrays") for form in (_SIZE, _ELEMENT)
    )
    return int(elements[0]) * int(size[0])


def best_rate(text: str, kernel: str) -> float:
    """The column "Best Rate MB/s" (10^6 bytes) of a kernel, one of four; raises RefusedOutput."""
    found = _ROW.findall(text)
    names = tuple(name for name, *_ in found)
    refuse(names != tuple(_ARRAYS), "STREAM's table does not have its four rows", text)
    unsure = "STREAM does not confirm that its arrays are right"
    only(_VALIDATED, text, unsure)
    refuse("Best Rate MB/s" not in text, unsure, text)
    rates = {name: (rate, shortest) for name, rate, shortest in found}
    rate, shortest = rates[kernel]
    refuse(float(rate) <= 0, "STREAM measured nothing: zero", text)
    moved = _ARRAYS[kernel] * _array_bytes(text) / MEGABYTE
    same = agree(span(rate), over(moved, span(shortest)))
    refuse(not same, f"STREAM's {kernel} of {rate} MB/s does not match {moved:g} MB in {shortest} s", text)
    return float(rate)
