"""The duration of a boot as `systemd-analyze time` prints it (src/analyze/analyze-time-data.c): "Startup
finished in A (kernel) + B (userspace) = C", times as sums of h, min, s, ms.
"""

import itertools
import re

from evmperf.benchmarks.tools._checks import refuse
from evmperf.model.errors import RefusedOutput

COMMAND = "systemd-analyze time"
LAST_BOOT = f'{{ {COMMAND} 2>/dev/null || dmesg | grep -o "[0-9.]*. Run /.*init as init process"; }}'
"""The duration, or the kernel's own line where there is no systemd: none if that is hidden or overwritten."""
UNFINISHED = "not yet finished"
"""What it says while the boot goes on."""

_UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000_001}
_TIME = r"(?:(?:\d+(?:h|min)|[1-5]?\d(?:\.\d+)?s|\d+(?:\.\d+)?(?:ms|us)) ?)+"
_PART = r"\((firmware|loader|kernel|initrd|userspace)\)"
_LINE = re.compile(
    rf"^Startup finished in ((?:{_TIME} ?{_PART}(?: \+ )?)+)(?: = (?P<sum>{_TIME}))? *$", re.MULTILINE
)
_UNIT = re.compile(rf" *({_TIME}) ?([\w@.:\\-]{{1,120}}\.[a-z]{{4,9}})")
_CHAINED = re.compile(rf"[ │├└─`|-]*([\w@.:\\-]{{1,120}}\.[a-z]{{4,9}})(?: @({_TIME}))?(?: \+({_TIME}))?")
_CHAIN_HEADS = ("The time when unit became active", "The time the unit took to start", "The time after the")
_DIGIT_MS = 1
"""Times are cut to milliseconds (format_timespan): a sum may be that much longer for each part but one."""


def parts(text: str) -> dict[str, float]:
    """Seconds of each part of the boot; raises RefusedOutput unless they make the sum."""
    match = _LINE.search(text)
    if not match:
        raise RefusedOutput("systemd-analyze did not print the duration of the boot", text)
    seconds = {name: _seconds(time) for time, name in re.findall(rf"({_TIME}) ?{_PART}", match[1])}
    both = "kernel" in seconds and "userspace" in seconds
    refuse(not both, "systemd-analyze names no kernel or no userspace", text)
    longer_ms = round(1000 * (_seconds(match["sum"] or "") - sum(seconds.values())))
    off = match["sum"] and longer_ms not in range(_DIGIT_MS * len(seconds))
    refuse(off, "the parts of the boot do not add up to its sum", text)
    return seconds


def units(text: str) -> list[tuple[str, float]]:
    """Units, which start side by side, with their seconds, from `systemd-analyze blame`, the longest first;
    raises RefusedOutput for any other line, or another order.
    """
    lines = [_UNIT.fullmatch(line) for line in text.splitlines() if line.strip()]
    rows = [(line[2], _seconds(line[1])) for line in lines if line]
    refuse(len(rows) != len(lines), "systemd-analyze printed another line than a unit's", text)
    falls = all(before >= after for (_, before), (_, after) in itertools.pairwise(rows))
    once = falls and len(dict(rows)) == len(rows)
    refuse(not once, "systemd-analyze's units are not in the order of their times, or come twice", text)
    return rows


def chain(text: str) -> list[str]:
    """Units on the critical chain, from `systemd-analyze critical-chain` (src/analyze/
    analyze-critical-chain.c), the last one to start first; raises RefusedOutput for any other line.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_CHAIN_HEADS)]
    units = [_CHAINED.fullmatch(line.rstrip()) for line in lines]
    refuse(not lines or not all(units), "systemd-analyze printed another line than a unit's of a chain", text)
    return [unit[1] for unit in units if unit]


def _seconds(text: str) -> float:
    times = re.findall(r"(\d+(?:\.\d+)?)(h|min|s|ms|us)", text)
    return round(sum(float(n) * _UNITS[unit] for n, unit in times), 6)
