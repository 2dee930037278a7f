"""U-Boot's `sf` command: erasing, writing and reading SPI flash, timed and compared, as cmd/sf.c, cmd/time.c
and cmd/mem.c of 2025.01 print it. Numbers are hexadecimal.
"""

import re

from evmperf.tools import uboot_time
from evmperf.tools._checks import refuse

PATTERN = 0x5AA5C33C
"""The written pattern: neither erased flash (all ones) nor cleared memory."""

_BACK = "${evmperf_back}"
_DONE = re.compile(r"SF: (\d+) bytes @ (0x[0-9a-f]+) (\w+): (\S+)")
_SAME = re.compile(r"Total of (\d+) byte\(s\) were the same")
_SEQUENCE = {"write": ["Erased", "Written", "Read"], "read": ["Read"]}


def fill(size: int) -> str:
    """Prepare memory: the pattern at `loadaddr`, and behind it room to read `size` bytes back."""
    return f"setexpr evmperf_back ${{loadaddr}} + {size:x} && mw.l ${{loadaddr}} {PATTERN:x} {size // 4:x}"


def timed_write(offset: int, size: int) -> str:
    """Erase, write (only this is timed), read back, compare."""
    return f"sf erase {offset:x} {size:x} && time sf write ${{loadaddr}} {offset:x} {size:x} && " + (
        _read_back("", offset, size)
    )


def timed_read(offset: int, size: int) -> str:
    """Read what `timed_write` wrote (only this is timed), compare."""
    return _read_back("time ", offset, size)


def _read_back(time: str, offset: int, size: int) -> str:
    # Clear first: an earlier read would leave the same data.
    return (
        f"mw.l {_BACK} 0 {size // 4:x} && {time}sf read {_BACK} {offset:x} {size:x} && "
        f"cmp.b ${{loadaddr}} {_BACK} {size:x}"
    )


def rate(text: str, operation: str, offset: int, size: int, unit: int) -> float:
    """Throughput of one `timed_write` or `timed_read` in `unit` bytes/s; raises RefusedOutput."""
    done = _DONE.findall(text)
    verbs = [verb for _, _, verb, _ in done]
    said = f"U-Boot's sf did not {operation} as asked: it says {', '.join(verbs) or 'nothing'}"
    refuse(verbs != _SEQUENCE[operation], said, text)
    for moved, place, verb, verdict in done:
        other = (int(moved), int(place, 16), verdict) != (size, offset, "OK")
        asked = f"U-Boot's sf was to move {size} bytes at {offset:#x}"
        refuse(other, f"{asked}, but {verb} {moved} at {place}: {verdict}", text)
    same = _SAME.findall(text) == [str(size)]
    refuse(not same, "U-Boot did not confirm the comparison of read and written data", text)
    return size / unit / uboot_time.seconds(text)
