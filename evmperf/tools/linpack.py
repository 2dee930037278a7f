"""Linpack (`runLinpack`, linpackc on Netlib), rolled or unrolled, in single or double precision: the result
is the lesser of the fourth rows of its two tables.
"""

import re

from evmperf.tools._checks import only, refuse

_LAST = re.compile(
    r"^(Unrolled|Rolled) +(Single|Double) +Precision +(-?\d+) Kflops *; *\d+ Reps *\n", re.MULTILINE
)
_ROW = re.compile(r"^ +\d+\.\d\d +-?\d+\.\d\d +\d+\.\d\d +(\d+) +\d+\.\d\d +\d+\.\d\d$")
_TABLE = re.compile(r" *times for array with leading dimension of +\d+")
_ROWS = 4


def kflops(text: str, precision: str = "single") -> float:
    """Thousands of operations a second (unrolled loops) in that precision; raises RefusedOutput."""
    loops, made, printed = only(_LAST, text, "Linpack printed no rate, or more than one, or was cut")
    refuse(int(printed) <= 0, f"Linpack measured nothing: {printed} Kflops", text)
    refuse(loops != "Unrolled", "Linpack's loops are rolled, which is slower: build it with -DUNROLL", text)
    other = (
        f"Linpack is one of {made.lower()} precision, not {precision}: build it with "
        f"-D{precision[:1].upper()}P, or set options.system.linpack_precision in the board file"
    )
    refuse(made.lower() != precision, other, text)
    fourth = [rows[-1] for rows in _tables(text)]
    refuse(int(printed) != min(fourth), f"Linpack's {printed} Kflops do not match its tables", text)
    return float(printed)


def _tables(text: str) -> list[list[int]]:
    tables: list[list[int]] = []
    for line in text.splitlines():
        if _TABLE.fullmatch(line):
            tables.append([])
        elif tables and (row := _ROW.fullmatch(line)):
            tables[-1].append(int(row.group(1)))
    counts = [len(rows) for rows in tables]
    refuse(counts != [_ROWS, _ROWS], "Linpack's two tables do not have their four rows", text)
    return tables
