"""NBench (`runNBench.sh`, Mayer's Unix port of BYTEmark 2): its table of rates, in columns of fixed width,
with two indices over a Pentium 90 and an AMD K6/233 (nbench0.h).
"""

import re

from evmperf.tools._checks import refuse
from evmperf.tools._rounding import agree, over, span

_PENTIUM_AND_K6 = {
    "NUMERIC SORT": (38.993, 118.73),
    "STRING SORT": (2.238, 14.459),
    "BITFIELD": (5829704.0, 27910000.0),
    "FP EMULATION": (2.084, 9.0314),
    "FOURIER": (879.278, 1565.5),
    "ASSIGNMENT": (0.2628, 1.0132),
    "IDEA": (65.382, 220.21),
    "HUFFMAN": (36.062, 112.93),
    "NEURAL NET": (0.6225, 1.4799),
    "LU DECOMPOSITION": (19.3031, 26.732),
}
_RATE = r" (?=.{15}  :)( *\d+(?:\.\d+)?(?:e\+\d\d)?)"
_INDEX = r"  (?=.{9}(?:  :|$))( *\d+\.\d\d)"
_ROW = re.compile(
    # The name is followed by the row, or by a warning that goes to lines of its own.
    rf"^(?P<name>[A-Z][A-Z ]{{19}}):(?P<warned>\n\*\* WARNING: [^\n]* is NOT 95 %[^\n]*\n"
    rf"\*\* WARNING: [^\n]*\n {{20}}:)?{_RATE}  :{_INDEX}  :{_INDEX}$",
    re.MULTILINE,
)


def iterations_per_second(text: str, kernel: str) -> tuple[float, bool]:
    """The rate of a kernel (in capitals), and whether NBench is 95 % certain of it."""
    matches = [match.groups() for match in _ROW.finditer(text)]
    rows = {name.strip(): [word and word.strip() for word in row] for name, *row in matches}
    ten = tuple(rows) == tuple(_PENTIUM_AND_K6) and len(rows) == len(matches) and text[-1:] == "\n"
    refuse(not ten, "NBench's table does not have its ten rows", text)
    for name, (_, rate, *indices) in rows.items():
        refuse(float(rate) <= 0, "NBench measured nothing: zero", text)
        for index, unit in zip(indices, _PENTIUM_AND_K6[name], strict=True):
            same = agree(over(span(rate), (unit, unit)), span(index))
            refuse(not same, f"NBench's {name} of {rate} does not match the index {index}", text)
    warned, rate, *_ = rows[kernel]
    return float(rate), not warned
