"""The scratch partition of a disk, or of flash (OSPI, QSPI, SPI, NAND): formatting and mounting it, after
`guard` has checked on the board that it neither is nor holds the root file system.
"""

import shlex
from typing import NamedTuple

from evmperf.benchmarks.step import CleanUp
from evmperf.boards.board import Board
from evmperf.model.places import STEP_FOLDER
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_UBI = 31
"""Number of our UBI device: the highest possible, which nobody else uses."""

MOUNT_POINT = f"{STEP_FOLDER}/mnt"
UBIFS = "ubifs"

_MAKE = {"ext4": "mkfs.ext4 -F -q", "ext3": "mkfs.ext3 -F -q", "ext2": "mkfs.ext2 -F -q", "vfat": "mkfs.vfat"}

_MOUNT_OPTIONS = {
    # Without noinit_itable the kernel goes on writing inode tables under the measurement.
    "ext4": "async,noinit_itable"
}

# What tells a driver's disk from others, in `$k` (its folder in sysfs): the kernel's type of a
# card, the bus in the path, the name of the host controller. Device names change between boots.
_KIND = {
    "emmc": ("an eMMC", '[ "$(cat $k/device/type)" = MMC ]'),
    "mmcsd": ("an SD card", '[ "$(cat $k/device/type)" = SD ]'),
    "pcie": ("an NVMe disk", "case ${k##*/} in nvme*) ;; *) false;; esac"),
    "ufs": ("a UFS disk", 'h=${k#*/host}; [ "$(cat /sys/class/scsi_host/host${h%%/*}/proc_name)" = ufshcd ]'),
    "sata": ("a SATA disk", "case $k in */ata[0-9]*) ;; *) false;; esac"),
    "msata": ("an mSATA disk", "case $k in */ata[0-9]*) ;; *) false;; esac"),
    "usb": ("a USB disk", "case $k in */usb[0-9]*) ;; *) false;; esac"),
}


def is_whole_disk(board: Board, driver: str) -> bool:
    """Whether the board file says that the driver's scratch may be a whole disk."""
    return board.sections.get(driver, {}).get("whole_disk") is True


def fits(partition: str, driver: str, *, whole_disk: bool = False, text: str = "fits") -> str:
    """Shell text that fails unless `partition` may be overwritten and is the driver's kind of disk."""
    what, holds = _KIND.get(driver, ("", ""))
    kind = f"{_SHELL('kind', what=what, holds=holds)};" if what else ""
    quoted, whole = shlex.quote(partition), int(whole_disk)
    return _SHELL(text, quoted=quoted, kind=kind, whole=whole, mount_point=MOUNT_POINT)


def guard(partition: str, driver: str, *, whole_disk: bool = False) -> str:
    """Shell text that fails like `fits`; it unmounts what is at MOUNT_POINT, and nothing else."""
    return fits(partition, driver, whole_disk=whole_disk, text="guard")


class FileSystem(NamedTuple):
    """Shell texts of a file system on what the board file calls scratch: `fresh` guards it, makes the file
    system anew and mounts it at MOUNT_POINT, `mount` mounts it again, `release` goes behind a clean-up.
    """

    fresh: str
    mount: str
    release: str


def tools(kind: str) -> tuple[str, ...]:
    """The programs that make a file system."""
    return ("ubiformat", "ubiattach", "ubimkvol") if kind == UBIFS else (_MAKE[kind].split()[0],)


def file_system(kind: str, board: Board, driver: str) -> FileSystem:
    """A file system on a partition of the driver's disk or card, or UBIFS on that of its flash."""
    scratch = board.text(driver, "scratch")
    if kind == UBIFS:
        where, device = f"{driver}.scratch", f"ubi{_UBI}:evmperf"
        # Room for UBI's and UBIFS's own blocks and for the largest file of the table.
        make = on_flash("ubifs", scratch, 16 << 20, where)
        release = f" && {on_flash('release', scratch, 0, where)}"
    else:
        device, release = shlex.quote(scratch), ""
        make = f"{guard(scratch, driver, whole_disk=is_whole_disk(board, driver))}; {_MAKE[kind]} {device}"
    mount = f"mount -t {kind} -o {_MOUNT_OPTIONS.get(kind, 'async')} {device} {MOUNT_POINT}"
    return FileSystem(f"{make} && mkdir -p {MOUNT_POINT} && {mount}", mount, release)


def clean_up(more: str = "") -> CleanUp:
    """The step that unmounts the scratch partition, whatever happened, and leaves no file system on it."""
    return CleanUp("clean-up", f"{{ {_SHELL('unmount', mount_point=MOUNT_POINT)}; }}{more}", 120, 0.5)


def on_flash(text: str, name: str, size: int, where: str) -> str:
    """Shell text that sets `$n`, `$m` and `$e` to number, device and erase block (bytes) of the MTD partition
    `name`; fails unless it is one of at least `size` bytes. `where` is its option, SECTION.KEY; `text` is
    `find_flash`, or `guard_flash` for a writable partition, which detaches an UBI device of ours.
    """
    quoted = {"quoted": shlex.quote(name), "listed": shlex.quote(f' "{name}"')}
    return _SHELL(text, name=name, **quoted, size=size, where=where, ubi=_UBI, mount_point=MOUNT_POINT)
