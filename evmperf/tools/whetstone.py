"""Whetstone (`runWhetstone`, Painter's C version on Netlib): its last line."""

import re

from evmperf.tools._checks import only, refuse
from evmperf.tools._rounding import agree, over, span

_LINES = re.compile(
    r"^Loops: (\d+), Iterations: (\d+), Duration: (\d+) sec\.\n"
    r"C Converted Double Precision Whetstones: (\d+\.\d) (MIPS|KIPS)\n",
    re.MULTILINE,
)


def mwips(text: str) -> float:
    """Millions of Whetstone instructions a second, whose seconds some ports cut or round."""
    found = only(_LINES, text, "Whetstone printed no rate, or more than one, or was cut")
    loops, iterations, seconds, rate, unit = found
    refuse(not int(seconds), "Whetstone took less than a second", text)
    thousands = int(loops) * int(iterations) * 100
    low, high = over(thousands, (int(seconds) - 0.5, int(seconds) + 1.0))
    scale = {"KIPS": 1, "MIPS": 1000}[unit]
    same = agree((low / scale, high / scale), span(rate))
    refuse(not same, "Whetstone's rate does not follow from its loops and seconds", text)
    refuse(float(rate) <= 0, "Whetstone measured nothing: zero", text)
    return float(rate) * scale / 1000
