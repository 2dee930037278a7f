"""STREAM 5.10 (`stream_c`, McCalpin's): its table of best rates."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.units import MEGABYTE
from evmperf.tools._rounding import agree, over, span

_ROW = re.compile(
    r"^(?=.{23}  .{11}  .{11}  .{11}$)"
    r"(\w+): +(\d+\.\d) +\d+\.\d{6} +(\d+\.\d{6}) +\d+\.\d{6}$",
    re.MULTILINE,
)
_SIZE = re.compile(r"^Array size = (\d+) \(elements\), Offset = \d+ \(elements\)$", re.MULTILINE)
_ELEMENT = re.compile(r"^This system uses (\d+) bytes per array element\.$", re.MULTILINE)
_ARRAYS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""How many arrays each kernel goes through."""


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
    sizes, elements = _SIZE.findall(text), _ELEMENT.findall(text)
    if len(sizes) != 1 or len(elements) != 1:
        raise RefusedOutput("STREAM does not say how large its arrays are", text)
    rates = {name: (rate, shortest) for name, rate, shortest in found}
    rate, shortest = rates[kernel]
    if float(rate) <= 0:
        raise RefusedOutput("STREAM measured nothing: zero", text)
    moved = _ARRAYS[kernel] * int(sizes[0]) * int(elements[0]) / MEGABYTE
    if not agree(span(rate), over(moved, span(shortest))):
        raise RefusedOutput(
            f"STREAM's {kernel} of {rate} MB/s is not that of {moved:g} MB in {shortest} s", text
        )
    return float(rate)
