"""U-Boot's `time` command around `mmc read` and `mmc write`."""

from __future__ import annotations

import re

from evmperf.errors import RefusedOutput
from evmperf.units import KIBIBYTE

SECTOR_BYTES = 512

_TIME = re.compile(r"time: (?:(\d+) minutes, )?(\d+)\.(\d{3}) seconds")
_MMC = re.compile(
    r"MMC (read|write): dev # (\d+), block # (\d+), count (\d+) \.\.\. "
    r"(\d+) blocks (?:read|written): (\S+)"
)


def seconds(text: str) -> float:
    """Seconds of exactly one `time:` line (cmd/time.c prints whole milliseconds)."""
    found = _TIME.findall(text)
    if len(found) != 1:
        raise RefusedOutput(f"U-Boot printed {len(found)} time lines instead of one", text)
    minutes, whole, milli = found[0]
    return int(minutes or 0) * 60 + int(whole) + int(milli) / 1000


def mmc_rate(text: str, operation: str, sectors: int) -> float:
    """Throughput in KiB/s of one timed `mmc read` or `mmc write` of `sectors` 512-byte sectors.

    Raises RefusedOutput when U-Boot did another operation, moved fewer sectors, or took no time.
    """
    found = _MMC.findall(text)
    if len(found) != 1:
        raise RefusedOutput(f"U-Boot printed {len(found)} MMC lines instead of one", text)
    done, _, _, asked, moved, verdict = found[0]
    if done != operation or verdict != "OK":
        raise RefusedOutput(f"U-Boot's mmc {operation} ended as {done}: {verdict}", text)
    if int(asked) != sectors or int(moved) != sectors:
        raise RefusedOutput(f"U-Boot moved {moved} of {sectors} sectors", text)
    took = seconds(text)
    if took <= 0:
        raise RefusedOutput("U-Boot measured no time at all", text)
    return sectors * SECTOR_BYTES / KIBIBYTE / took
