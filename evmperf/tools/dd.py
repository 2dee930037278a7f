"""dd of GNU coreutils: parser of the line it ends with (LC_ALL=C)."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.units import MEGABYTE

TEXT_FILE = "dd.txt"

_LAST = re.compile(r"(\d+) bytes \([^\n]*\) copied, (\d+(?:\.\d+)?(?:e-\d+)?) s, [^\n]+/s")
_RECORDS = re.compile(r"(\d+)\+(\d+) records (in|out)")


def throughput(text: str, expected_bytes: int, unit: int = MEGABYTE) -> float:
    """Throughput of a dd that copied exactly `expected_bytes`, in MB/s (10^6 bytes) or, with
    another `unit`, in so many bytes per second.

    dd prints seconds with 6 significant digits. Raises RefusedOutput for a short copy, a zero
    time, an error message, or any line that dd does not print.
    """
    found: re.Match[str] | None = None
    for line in text.splitlines():
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
    return copied / seconds / unit
