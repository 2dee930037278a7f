"""dd of GNU coreutils and of uutils: parser of the line it ends with (LC_ALL=C)."""

import re

from evmperf.benchmarks.tools._checks import agree, over, refuse, span, times, whole
from evmperf.model.units import MEGABYTE

TEXT_FILE = "dd.txt"

_LAST = re.compile(
    r"(\d+) bytes \([^\n]*\) copied, (\d+(?:\.\d+)?(?:e-\d+)?) s, (\d+(?:\.\d)?) ([kMGTP]?)B/s"
)
_EARLIER_S = 0.0005
"""Seconds by which uutils looks at the clock for the rate before it does for the seconds that it prints."""
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_RECORDS = re.compile(r"(\d+)\+(\d+) records (in|out)")


def throughput(text: str, expected_bytes: int, unit: int = MEGABYTE) -> float:
    """Throughput of a dd that copied exactly `expected_bytes`, in MB/s (10^6 bytes) or in `unit` bytes/s.

    Raises RefusedOutput for a short copy, a zero time, a rate that does not follow from bytes and seconds, or
    any line that dd does not print.
    """
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if _RECORDS.fullmatch(line)), 0)
    # Lines before the records are progress messages (`status=progress`), each behind a carriage return.
    meanwhile = all(_LAST.fullmatch(line) for line in map(str.strip, lines[:begin]) if line)
    last = [line for line in lines[begin if meanwhile else 0 :] if not _RECORDS.fullmatch(line)]
    refuse(not last, "dd's last line is missing", text)
    odd = [line for line in last if not _LAST.fullmatch(line)] or [*last[1:], ""]
    match = whole(_LAST, last[0], f"dd printed something unexpected: {odd[0][:120]!r}", text)
    refuse(len(last) > 1, f"dd printed something unexpected: {odd[0][:120]!r}", text)
    copied, seconds = int(match[1]), float(match[2])
    refuse(copied != expected_bytes, f"dd copied {copied} of {expected_bytes} bytes", text)
    refuse(seconds <= 0, "dd took no time at all", text)
    rate = times(span(match[3]), _PREFIXES[match[4]])
    earliest, latest = span(match[2])
    same = agree(over(copied, (max(earliest - _EARLIER_S, 0.0), latest)), rate)
    refuse(not same, f"dd's rate does not match {copied} bytes in {seconds:g} s", text)
    return copied / seconds / unit
