"""Whetstone (`runWhetstone`, Painter's C version on Netlib): its last line."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

_LINES = re.compile(
    r"Loops: (\d+), Iterations: (\d+), Duration: (\d+) sec\.\n"
    r"C Converted Double Precision Whetstones: (\d+(?:\.\d+)?) (MIPS|KIPS)\n"
)


def mwips(text: str) -> float:
    """Millions of Whetstone instructions a second.

    A loop is 100 000 instructions and time is in whole seconds, so the rate is checked against
    them. Raises RefusedOutput for anything else, and for less than a second.
    """
    found = _LINES.findall(text)
    if len(found) != 1:
        raise RefusedOutput("Whetstone printed no rate, or more than one, or was cut", text)
    loops, iterations, seconds, rate, unit = found[0]
    value = float(rate) / (1000 if unit == "KIPS" else 1)
    if not int(seconds):
        raise RefusedOutput("Whetstone took less than a second", text)
    if abs(value - int(loops) * int(iterations) / int(seconds) / 10) > 0.05:
        raise RefusedOutput("Whetstone's rate does not follow from its loops and seconds", text)
    return value
