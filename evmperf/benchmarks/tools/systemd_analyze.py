"""The duration of a boot as `systemd-analyze time` prints it (src/analyze/analyze-time-data.c): "Startup
finished in A (kernel) + B (userspace) = C", times as sums of h, min, s, ms.
"""

import re

from evmperf.benchmarks.tools._checks import refuse
from evmperf.model.errors import RefusedOutput

COMMAND = "systemd-analyze time"
UNFINISHED = "not yet finished"
"""What it says while the boot goes on."""

_UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000_001}
_TIME = r"(?:\d+(?:\.\d+)?(?:h|min|s|ms|us) ?)+"
_PART = r"\((firmware|loader|kernel|initrd|userspace)\)"
_LINE = re.compile(
    rf"^Startup finished in ((?:{_TIME} ?{_PART}(?: \+ )?)+)(?: = (?P<sum>{_TIME}))? *$", re.MULTILINE
)
_UNIT = re.compile(
    rf" *({_TIME}) ?([\w@.:\\-]{{1,120}}\.(?:service|mount|device|socket|target|swap|scope|path))"
)
_ROUNDED_S = 0.01
"""What rounding may make of the sum of four parts, in seconds."""


def parts(text: str) -> dict[str, float]:
    """Seconds of each part of the boot; raises RefusedOutput unless they make the sum."""
    match = _LINE.search(text)
    if not match:
        raise RefusedOutput("systemd-analyze did not print the duration of the boot", text)
    found = {name: _seconds(time) for time, name in re.findall(rf"({_TIME}) ?{_PART}", match[1])}
    both = "kernel" in found and "userspace" in found
    refuse(not both, "systemd-analyze names no kernel or no userspace", text)
    off = match["sum"] and abs(sum(found.values()) - _seconds(match["sum"])) > _ROUNDED_S
    refuse(off, "the parts of the boot do not add up to its sum", text)
    return found


def units(text: str) -> list[tuple[str, float]]:
    """Units, which start side by side, with their seconds, from `systemd-analyze blame`."""
    lines = (_UNIT.fullmatch(line) for line in text.splitlines())
    return [(line[2], _seconds(line[1])) for line in lines if line]


def _seconds(text: str) -> float:
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(h|min|s|ms|us)", text))
