"""Output of evmperf's stand-ins for benchmark programs (virtual-evm/virtual/programs): `PROGRAM VERSION`,
lines of `NAME VALUE UNIT`, `end`. Different programs are not compared.
"""

import re

from evmperf.tools._checks import refuse

PREFIX = "evmperf-"

_FIGURE = re.compile(r"(\w+) (\d+(?:\.\d+)?(?:e\+\d+)?) (\S+)")


def figure(text: str, program: str, name: str, unit: str) -> float:
    """The figure of that name, in that unit; raises RefusedOutput for anything but whole output."""
    first, *lines, last = text.splitlines() if text.count("\n") > 1 else ("", "")
    whole = first == f"{program} 1" and last == "end" and text.endswith("\n")
    refuse(not whole, f"this is not the whole output of {program} 1", text)
    found = [_FIGURE.fullmatch(line) for line in lines]
    values = {match[1]: (match[2], match[3]) for match in found if match}
    once = all(found) and len(values) == len(found)
    refuse(not once, f"{program} printed no figure where one belongs, or one twice", text)
    value, printed_unit = values.get(name, ("", ""))
    refuse(printed_unit != unit, f"{program} printed no {name} in {unit}", text)
    refuse(float(value) <= 0, f"{program} measured nothing: zero", text)
    return float(value)
