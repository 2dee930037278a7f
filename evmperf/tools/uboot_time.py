"""U-Boot's `time` command around its reading and writing of disks and files."""

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.units import KIBIBYTE
from evmperf.tools._rounding import agree, over, span, times

SECTOR_BYTES = 512
SCSI_BLOCK_BYTES = 4096
"""Block size of UFS."""

_TIME = re.compile(r"time: (?:(\d+) minutes, )?(\d+)\.(\d{3}) seconds")
_BLOCKS = r"block # (\d+), count (\d+) \.\.\. (\d+) blocks (?:read|written): (\S+)"
_MMC = re.compile(r"MMC (read|write): dev # (\d+), " + _BLOCKS)
_SCSI = re.compile(r"scsi (read|write): device (\d+) " + _BLOCKS)
_FILE = re.compile(
    r"^(\d+) bytes (read|written) in (\d+) ms(?: \((\d+(?:\.\d)?) (Bytes|[KMG]iB)/s\))?$", re.MULTILINE
)
_BESIDE_MS = 250.0
_BESIDE = 0.05
"""Seconds for a command to find its file, which takes longer on a larger medium."""
_UNITS = {"Bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def seconds(text: str) -> float:
    """Seconds of exactly one `time:` line (cmd/time.c prints whole milliseconds)."""
    found = _TIME.findall(text)
    if len(found) != 1:
        raise RefusedOutput(f"U-Boot printed {len(found)} time lines instead of one", text)
    minutes, whole, milli = found[0]
    if int(whole) >= 60:
        raise RefusedOutput(f"U-Boot does not print times as {whole}.{milli} seconds", text)
    return int(minutes or 0) * 60 + int(whole) + int(milli) / 1000


def mmc_rate(text: str, operation: str, sectors: int) -> float:
    """KiB/s of one timed `mmc` access of `sectors` x 512 bytes; raises RefusedOutput for any other."""
    _check_blocks("mmc", _MMC.findall(text), operation, sectors, text)
    return _rate(sectors * SECTOR_BYTES, text)


def scsi_rate(text: str, operation: str, blocks: int) -> float:
    """KiB/s of one timed `scsi` access of `blocks` x 4096 bytes; raises RefusedOutput for any other."""
    _check_blocks("scsi", _SCSI.findall(text), operation, blocks, text)
    return _rate(blocks * SCSI_BLOCK_BYTES, text)


def file_rate(text: str, operation: str, size: int) -> float:
    """Throughput in KiB/s of one timed `fatload` (read) or `fatwrite` (write) of `size` bytes.

    It is `time`'s figure; U-Boot's own line covers less of the command: all but finding the file.
    Raises RefusedOutput when U-Boot moved other than `size` bytes, the other way, or took no time.
    """
    found = _FILE.findall(text)
    if len(found) != 1:
        raise RefusedOutput(f"U-Boot printed {len(found)} lines of bytes instead of one", text)
    moved, done, took_ms, printed, unit = found[0]
    if done != {"read": "read", "write": "written"}[operation]:
        raise RefusedOutput(f"U-Boot was asked to {operation} a file, but says {done}", text)
    if int(moved) != size:
        raise RefusedOutput(f"U-Boot moved {moved} of {size} bytes", text)
    milliseconds = int(took_ms)
    if printed and not agree(
        over(1000 * size, (milliseconds - 0.5, milliseconds + 1.0)),
        times(span(printed, units=1.0), float(_UNITS[unit])),
    ):
        raise RefusedOutput(f"U-Boot's rate does not match {size} bytes in {took_ms} ms", text)
    beside_ms = 1000 * seconds(text) - milliseconds
    if beside_ms < -1:
        raise RefusedOutput(f"U-Boot's time is shorter than the {took_ms} ms of the file", text)
    if beside_ms > _BESIDE_MS + _BESIDE * milliseconds:
        raise RefusedOutput(f"U-Boot's time is much longer than the {took_ms} ms of the file", text)
    return _rate(size, text)


def _check_blocks(name: str, found: list[tuple[str, ...]], operation: str, blocks: int, text: str) -> None:
    if len(found) != 1:
        raise RefusedOutput(f"U-Boot printed {len(found)} {name.upper()} lines instead of one", text)
    done, _, _, asked, moved, verdict = found[0]
    if done != operation or verdict != "OK":
        raise RefusedOutput(f"U-Boot's {name} {operation} ended as {done}: {verdict}", text)
    if int(asked) != blocks or int(moved) != blocks:
        raise RefusedOutput(f"U-Boot moved {moved} of {blocks} sectors", text)


def _rate(size: int, text: str) -> float:
    took = seconds(text)
    if took <= 0:
        raise RefusedOutput("U-Boot measured no time at all", text)
    return size / KIBIBYTE / took
