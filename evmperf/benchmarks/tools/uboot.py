"""U-Boot's `time` command around its reading and writing of disks and files, and around `sf`, which erases,
writes, reads and compares SPI flash (cmd/sf.c, cmd/time.c and cmd/mem.c of 2025.01).
"""

import re

from evmperf.benchmarks.tools._checks import agree, only, over, refuse, span, times
from evmperf.model.units import KIBIBYTE

SECTOR_BYTES = 512
SCSI_BLOCK_BYTES = 4096
"""Block size of UFS."""

TIME = "time time time"
"""Before a command: `time` takes any, also another one, so a number that a console may damage comes three
times, each later by the printing of one line.
"""
_UNEVEN_S, _UNEVEN = 0.005, 0.01
"""By how many seconds, and what part of the time, the printing of two lines may differ."""
_TIME = re.compile(r"time: (?:(\d+) minutes, )?(\d+)\.(\d{3}) seconds")
_BLOCKS = r"block # (\d+), count (\d+) \.\.\. (\d+) blocks (?:read|written): (\S+)"
_DISKS = {
    "mmc": (re.compile(r"MMC (read|write): dev # (\d+), " + _BLOCKS), SECTOR_BYTES),
    "scsi": (re.compile(r"scsi (read|write): device (\d+) " + _BLOCKS), SCSI_BLOCK_BYTES),
}
"""The line of U-Boot's command, and the bytes of a block."""
_FILE = re.compile(
    r"^(\d+) bytes (read|written) in (\d+) ms(?: \((\d+(?:\.\d)?) (Bytes|[KMG]iB)/s\))?$", re.MULTILINE
)
_BESIDE_MS = 100.0
_BESIDE = 0.05
"""Seconds for a command to find its file, which takes longer on a larger medium."""
_UNITS = {"Bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

PATTERN = 0x5AA5C33C
"""The written pattern: neither erased flash (all ones) nor cleared memory."""

_BACK = "${evmperf_back}"
_DONE = re.compile(r"SF: (\d+) bytes @ (0x[0-9a-f]+) (\w+): (\S+)")
_SAME = re.compile(r"Total of (\d+) byte\(s\) were the same")
_SEQUENCE = {"write": ["Erased", "Written", "Read"], "read": ["Read"]}


def seconds(text: str) -> float:
    """Seconds of the command behind TIME, more than zero: cmd/time.c prints whole milliseconds. Three lines
    must fit each other; a command behind one `time` has one line, and nothing checks it.
    """
    lines = _TIME.findall(text)
    whole = len(lines) in (1, 3) and len(lines) == len(re.findall(r"\btime", text))
    refuse(not whole, f"U-Boot printed {len(lines)} time lines instead of one or three", text)
    took = [_seconds(line, text) for line in lines]
    refuse(took[0] <= 0, "U-Boot measured a time of zero", text)
    if len(took) > 1:
        # What is between them is the printing of one line.
        first_s, second_s = took[1] - took[0], took[2] - took[1]
        uneven = abs(second_s - first_s) > _UNEVEN_S + _UNEVEN * took[0]
        refuse(min(first_s, second_s) < 0 or uneven, "U-Boot's three times of a command disagree", text)
    return took[0]


def _seconds(line: tuple[str, str, str], text: str) -> float:
    minutes, whole, milli = line
    refuse(int(whole) >= 60, f"U-Boot does not print times as {whole}.{milli} seconds", text)
    return int(minutes or 0) * 60 + int(whole) + int(milli) / 1000


def disk_rate(text: str, operation: str, count: int, command: str) -> float:
    """KiB/s of one access of `count` blocks by `mmc` (512 bytes) or `scsi` (4096); raises RefusedOutput."""
    form, block_bytes = _DISKS[command]
    fields = only(form, text, f"U-Boot printed {{}} {command.upper()} lines instead of one")
    done, _, _, asked, moved, verdict = fields
    other = (done, verdict) != (operation, "OK")
    refuse(other, f"U-Boot's {command} {operation} ended as {done}: {verdict}", text)
    refuse(int(asked) != count or int(moved) != count, f"U-Boot moved {moved} of {count} sectors", text)
    return count * block_bytes / KIBIBYTE / seconds(text)


def file_rate(text: str, operation: str, size: int) -> float:
    """KiB/s of one timed `fatload` (read) or `fatwrite` (write) of `size` bytes by `time`, which U-Boot's own
    line must fit; raises RefusedOutput for another size or way, or no time.
    """
    fields = only(_FILE, text, "U-Boot printed {} lines of bytes instead of one")
    moved, done, took_ms, printed, unit = fields
    other = done != {"read": "read", "write": "written"}[operation]
    refuse(other, f"U-Boot was asked to {operation} a file, but says {done}", text)
    refuse(int(moved) != size, f"U-Boot moved {moved} of {size} bytes", text)
    milliseconds = int(took_ms)
    if printed:
        rate = times(span(printed, units=1.0), float(_UNITS[unit]))
        same = agree(over(1000 * size, (milliseconds - 0.5, milliseconds + 1.0)), rate)
        refuse(not same, f"U-Boot's rate does not match {size} bytes in {took_ms} ms", text)
    took_s = seconds(text)
    beside_ms = 1000 * took_s - milliseconds
    refuse(beside_ms < -1, f"U-Boot's time is shorter than the {took_ms} ms of the file", text)
    late = beside_ms > _BESIDE_MS + _BESIDE * milliseconds
    refuse(late, f"U-Boot's time is much longer than the {took_ms} ms of the file", text)
    return size / KIBIBYTE / took_s


def sf_fill(size: int) -> str:
    """Prepare memory: the pattern at `loadaddr`, and behind it room to read `size` bytes back."""
    return f"setexpr evmperf_back ${{loadaddr}} + {size:x} && mw.l ${{loadaddr}} {PATTERN:x} {size // 4:x}"


def sf_write(offset: int, size: int) -> str:
    """Erase, write (only this is timed), read back, compare."""
    return f"sf erase {offset:x} {size:x} && {TIME} sf write ${{loadaddr}} {offset:x} {size:x} && " + (
        _read_back("", offset, size)
    )


def sf_read(offset: int, size: int) -> str:
    """Read what `sf_write` wrote (only this is timed), compare."""
    return _read_back(f"{TIME} ", offset, size)


def _read_back(time: str, offset: int, size: int) -> str:
    # Clear first: an earlier read would leave the same data.
    return (
        f"mw.l {_BACK} 0 {size // 4:x} && {time}sf read {_BACK} {offset:x} {size:x} && "
        f"cmp.b ${{loadaddr}} {_BACK} {size:x}"
    )


def sf_rate(text: str, operation: str, offset: int, size: int, unit: int) -> float:
    """Throughput of one `sf_write` or `sf_read` in `unit` bytes/s; raises RefusedOutput."""
    done = _DONE.findall(text)
    verbs = [verb for _, _, verb, _ in done]
    reason = f"U-Boot's sf did not {operation} as asked: it says {', '.join(verbs) or 'nothing'}"
    refuse(verbs != _SEQUENCE[operation], reason, text)
    for moved, place, verb, verdict in done:
        other = (int(moved), int(place, 16), verdict) != (size, offset, "OK")
        asked = f"U-Boot's sf was to move {size} bytes at {offset:#x}"
        refuse(other, f"{asked}, but {verb} {moved} at {place}: {verdict}", text)
    same = _SAME.findall(text) == [str(size)]
    refuse(not same, "U-Boot did not confirm the comparison of read and written data", text)
    return size / unit / seconds(text)
