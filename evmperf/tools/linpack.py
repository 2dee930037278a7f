"""Linpack (`runLinpack`, linpackc on Netlib): the line it ends with."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

_LAST = re.compile(
    r"^Unrolled (?:Single|Double) +Precision +(\d+(?:\.\d+)?) Kflops *; *\d+ Reps *\n", re.MULTILINE
)


def kflops(text: str) -> float:
    """Thousands of floating-point operations a second; raises RefusedOutput without one line."""
    found = _LAST.findall(text)
    if len(found) != 1:
        raise RefusedOutput("Linpack printed no rate, or more than one, or was cut", text)
    value = float(found[0])
    if value <= 0:
        raise RefusedOutput("Linpack measured nothing: zero", text)
    return value
