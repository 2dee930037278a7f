"""dd of GNU coreutils: parser of the line it ends with (LC_ALL=C)."""

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.units import MEGABYTE
from evmperf.tools._rounding import agree, over, span, times

TEXT_FILE = "dd.txt"

_LAST = re.compile(
    r"(\d+) bytes \([^\n]*\) copied, (\d+(?:\.\d+)?(?:e-\d+)?) s, (\d+(?:\.\d)?) ([kMGTP]?)B/s"
)
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_RECORDS = re.compile(r"(\d+)\+(\d+) records (in|out)")


def throughput(text: str, expected_bytes: int, unit: int = MEGABYTE) -> float:
    """Throughput of a dd that copied exactly `expected_bytes`, in MB/s (10^6 bytes) or, with
    another `unit`, in so many bytes per second.

    dd prints seconds with 6 significant digits, and a rate with 2 or 3. Raises RefusedOutput for
    a short copy, a zero time, an error message, a rate that does not follow from bytes and
    seconds, or any line that dd does not print.
    """
    found: re.Match[str] | None = None
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if _RECORDS.fullmatch(line)), 0)
    # Lines before the records are progress messages (`status=progress`).
    meanwhile = all(map(_LAST.fullmatch, lines[:begin]))
    for line in lines[begin if meanwhile else 0 :]:
        if _RECORDS.fullmatch(line):
            continue
        match = _LAST.fullmatch(line)
        if not match or found:
            raise RefusedOutput(f"dd printed something unexpected: {line[:120]!r}", text)
        found = match
    if not found:
        raise RefusedOutput("dd's last line is missing", text)
    copied, seconds = int(found.group(1)), float(found.group(2))
    if copied != expected_bytes:
        raise RefusedOutput(f"dd copied {copied} of {expected_bytes} bytes", text)
    if seconds <= 0:
        raise RefusedOutput("dd took no time at all", text)
    # dd rounds up or down: one unit of the last place.
    rate = times(span(found.group(3), units=1.0), _PREFIXES[found.group(4)])
    if not agree(over(copied, span(found.group(2))), rate):
        raise RefusedOutput(f"dd's rate does not match {copied} bytes in {seconds:g} s", text)
    return copied / seconds / unit
