"""Linpack (`runLinpack`, linpackc on Netlib): its two tables and last line.

The program is built for rolled or unrolled loops, in single or double precision: four quantities.
Its result is the lesser of the fourth rows of its two tables.
"""

import re

from evmperf.model.errors import RefusedOutput

_LAST = re.compile(
    r"^(Unrolled|Rolled) +(Single|Double) +Precision +(-?\d+) Kflops *; *\d+ Reps *\n", re.MULTILINE
)
_ROW = re.compile(r"^ +\d+\.\d\d +-?\d+\.\d\d +\d+\.\d\d +(\d+) +\d+\.\d\d +\d+\.\d\d$")
_TABLE = re.compile(r" *times for array with leading dimension of +\d+")
_ROWS = 4


def kflops(text: str, precision: str = "single") -> float:
    """Thousands of floating-point operations a second, of unrolled loops in that precision.

    Raises RefusedOutput for another build of the program, and unless the result is that of its tables.
    """
    found = _LAST.findall(text)
    if len(found) != 1:
        raise RefusedOutput("Linpack printed no rate, or more than one, or was cut", text)
    loops, made, printed = found[0]
    if int(printed) <= 0:
        raise RefusedOutput(f"Linpack measured nothing: {printed} Kflops", text)
    if loops != "Unrolled":
        raise RefusedOutput("Linpack's loops are rolled, which is slower: build it with -DUNROLL", text)
    if made.lower() != precision:
        raise RefusedOutput(
            f"Linpack is one of {made.lower()} precision, not {precision}: build it with "
            f"-D{precision[0].upper()}P, or set options.system.linpack_precision in the board file",
            text,
        )
    fourth = [rows[-1] for rows in _tables(text)]
    if int(printed) != min(fourth):
        raise RefusedOutput(f"Linpack's {printed} Kflops do not match its tables", text)
    return float(printed)


def _tables(text: str) -> list[list[int]]:
    tables: list[list[int]] = []
    for line in text.splitlines():
        if _TABLE.fullmatch(line):
            tables.append([])
        elif tables and (row := _ROW.fullmatch(line)):
            tables[-1].append(int(row.group(1)))
    if [len(rows) for rows in tables] != [_ROWS, _ROWS]:
        raise RefusedOutput("Linpack's two tables do not have their four rows", text)
    return tables
