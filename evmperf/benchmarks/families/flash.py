"""Flash under Linux (OSPI, QSPI, SPI, NAND): finding and guarding an MTD partition, and UBIFS on it.

Only the MTD partition that the board file names as scratch is written.
"""

import shlex

from evmperf.benchmarks.families.scratch import MOUNT_POINT, FileSystem
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_UBI = 31
"""Number of our UBI device: the highest possible, which nobody else uses."""


def find(name: str, size: int, where: str) -> str:
    """Shell text that sets `$n`, `$m` and `$e` to number, device and erase block (bytes) of the MTD partition
    `name`; fails unless it is one of at least `size` bytes. `where` is its option, SECTION.KEY.
    """
    return _text("find", name, size, where)


def guard(name: str, size: int, driver: str) -> str:
    """Shell text like `find`, for a writable MTD partition; detaches an UBI device of ours."""
    return _text("guard", name, size, f"{driver}.scratch")


def _text(text: str, name: str, size: int, where: str) -> str:
    quoted = {"quoted": shlex.quote(name), "listed": shlex.quote(f' "{name}"')}
    return _SHELL(text, name=name, **quoted, size=size, where=where, ubi=_UBI, mount_point=MOUNT_POINT)


def ubifs(driver: str) -> FileSystem:
    """UBIFS on the scratch partition of a driver's flash."""
    where = f"{driver}.scratch"
    return FileSystem(
        name="ubifs",
        tools=("ubiformat", "ubiattach", "ubimkvol"),
        # Room for UBI's and UBIFS's own blocks and for the largest file of the table.
        make=lambda scratch: _text("ubifs", scratch, 16 << 20, where),
        mount=lambda scratch: f"mount -t ubifs -o async ubi{_UBI}:evmperf {MOUNT_POINT}",
        release=lambda scratch: _text("release", scratch, 0, where),
    )
