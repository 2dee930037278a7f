"""STREAM 5 (`stream_c`, McCalpin's): its table of best rates."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

_ROW = re.compile(r"^(\w+): +(\d+\.\d) +\d+\.\d{6} +\d+\.\d{6} +\d+\.\d{6}$", re.MULTILINE)
_KERNELS = ("Copy", "Scale", "Add", "Triad")


def best_rate(text: str, kernel: str) -> float:
    """The column "Best Rate MB/s" of one kernel, in MB/s (10^6 bytes).

    Raises RefusedOutput unless all four rows are there and STREAM found its arrays right.
    """
    found = _ROW.findall(text)
    if tuple(name for name, _ in found) != _KERNELS:
        raise RefusedOutput("STREAM's table does not have its four rows", text)
    if "Best Rate MB/s" not in text or "Solution Validates" not in text:
        raise RefusedOutput("STREAM does not say that its arrays are right", text)
    rate = float(dict(found)[kernel])
    if rate <= 0:
        raise RefusedOutput("STREAM measured nothing: zero", text)
    return rate
