"""Flash under Linux (OSPI, QSPI, SPI, NAND): finding and guarding an MTD partition, and UBIFS on it.

Only the MTD partition that the board file names as scratch is written.
"""

import shlex

from evmperf.benchmarks.families.scratch import MOUNT_POINT, FileSystem

_UBI = 31
"""Number of our UBI device: the highest possible, which nobody else uses."""


def find(name: str, size: int, where: str) -> str:
    """Shell text that sets `$n`, `$m` and `$e` to number, device and erase block (bytes) of the MTD partition
    `name`; fails unless it is one of at least `size` bytes. `where` is its option, SECTION.KEY.
    """
    quoted = shlex.quote(f' "{name}"')
    line = f"grep -F {quoted} /proc/mtd"
    return (
        f'no() {{ echo "{name} $*: name another partition in options.{where}"; exit 3; }}; '
        f'[ "$({line} | grep -c .)" = 1 ] || no "is not exactly once in /proc/mtd"; '
        f"set -- $({line}); n=${{1#mtd}}; n=${{n%:}}; m=/dev/mtd$n; e=$((0x$3)); "
        f'[ $((0x$2)) -ge {size} ] || no "is smaller than {size} bytes"'
    )


def guard(name: str, size: int, driver: str) -> str:
    """Shell text like `find`, for a writable MTD partition; detaches an UBI device of ours."""
    return (
        f"{find(name, size, f'{driver}.scratch')}; {_let_go()}; "
        "for p in /sys/class/mtd/mtd$n/mtd*/erasesize; do "
        '[ ! -e $p ] || no "is divided into partitions"; done; '
        "for u in /sys/class/ubi/ubi*/mtd_num; do "
        '[ ! -e $u ] || [ "$(cat $u)" != $n ] || no "is attached to UBI"; done; '
        'grep -qsE "^(/dev/)?mtd(block)?$n |^mtd:"' + shlex.quote(name) + '" " '
        '/proc/mounts /proc/swaps && no "is mounted"; '
        'case "$(readlink -f /sys/dev/block/$(mountpoint -d /))" in '
        '*/mtdblock$n) no "holds the root";; esac'
    )


def _let_go() -> str:
    """Shell text that detaches our UBI device from the MTD partition `$n`, if it is attached."""
    return (
        f'if [ "$(cat /sys/class/ubi/ubi{_UBI}/mtd_num 2>/dev/null)" = $n ]; then '
        f"! mountpoint -q {MOUNT_POINT} || umount {MOUNT_POINT} || exit 3; "
        f"ubidetach -d {_UBI} || exit 3; fi"
    )


def ubifs(driver: str) -> FileSystem:
    """UBIFS on the scratch partition of a driver's flash."""

    def make(scratch: str) -> str:
        # Room for UBI's and UBIFS's own blocks and for the largest file of the table.
        return (
            f"{guard(scratch, 16 << 20, driver)}; modprobe -aq ubi ubifs; ubiformat -q -y $m && "
            f"ubiattach -m $n -d {_UBI} && ubimkvol /dev/ubi{_UBI} -N evmperf -m"
        )

    return FileSystem(
        name="ubifs",
        tools=("ubiformat", "ubiattach", "ubimkvol"),
        make=make,
        mount=lambda scratch: f"mount -t ubifs -o async ubi{_UBI}:evmperf {MOUNT_POINT}",
        release=lambda scratch: f"{{ {find(scratch, 0, f'{driver}.scratch')}; {_let_go()}; }}",
    )
