"""Steps that the benchmarks of OSPI and QSPI flash share: MTD partitions, UBIFS, U-Boot's sf.

Only the MTD partition and the region of U-Boot that the board file names as scratch are written.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial

from evmperf.benchmarks.benchmark import Profile
from evmperf.benchmarks.families.storage.file_system_table import SOURCE
from evmperf.benchmarks.families.storage.scratch import MOUNT_POINT, FileSystem
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Outputs, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import MEGABYTE, Unit
from evmperf.tools import dd, uboot_sf

_UBI = 31
"""Number of our UBI device: the highest there is, so that it is nobody else's."""


def find(name: str, size: int, where: str) -> str:
    """Shell text that sets `$n`, `$m` and `$e` to number, device and erase block size (bytes) of
    the MTD partition `name`, or fails: not there, not unique, or smaller than `size` bytes.

    `where` is the key of the board file that names it.
    """
    quoted = shlex.quote(f' "{name}"')
    line = f"grep -F {quoted} /proc/mtd"
    return (
        f'no() {{ echo "{name} $*: name another partition in options.ospi.{where}"; exit 3; }}; '
        f'[ "$({line} | grep -c .)" = 1 ] || no "is not there or not once in /proc/mtd"; '
        f"set -- $({line}); n=${{1#mtd}}; n=${{n%:}}; m=/dev/mtd$n; e=$((0x$3)); "
        f'[ $((0x$2)) -ge {size} ] || no "is smaller than {size} bytes"'
    )


def guard(name: str, size: int) -> str:
    """Shell text like `find` that also fails unless the MTD partition may be overwritten.

    An UBI device that we left there is detached.
    """
    return (
        f"{find(name, size, 'scratch')}; {_let_go()}; "
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


def _make(scratch: str) -> str:
    # Room for UBI's and UBIFS's own blocks and for the largest file of the table.
    return (
        f"{guard(scratch, 16 << 20)}; modprobe -aq ubi ubifs; ubiformat -q -y $m && "
        f"ubiattach -m $n -d {_UBI} && ubimkvol /dev/ubi{_UBI} -N evmperf -m"
    )


def _release(scratch: str) -> str:
    return f"{{ {find(scratch, 0, 'scratch')}; {_let_go()}; }}"


UBIFS = FileSystem(
    name="ubifs",
    tools=("ubiformat", "ubiattach", "ubimkvol"),
    make=_make,
    mount=lambda scratch: f"mount -t ubifs -o async ubi{_UBI}:evmperf {MOUNT_POINT}",
    release=_release,
)


def read_command(size: int) -> str:
    """Shell text that reads `size` bytes of `$m` in one go, as raw_perf.sh does."""
    return f'dd if=$m of=/dev/null bs={size} count=1 2>"$OUT/{dd.TEXT_FILE}"'


def raw_steps(board: Board, size: int) -> Sequence[Step]:
    """Write the scratch partition and read it, through the MTD's character device.

    Erasing is not timed; what was written is compared before its figure counts.
    """
    scratch = board.options.ospi.scratch
    write = (
        f"{guard(scratch, size)}; flash_erase -q $m 0 $((({size} + e - 1) / e)) && "
        f'dd if={SOURCE} of=$m bs=1M 2>"$OUT/{dd.TEXT_FILE}" && head -c {size} $m | cmp - {SOURCE}'
    )
    read = f"{find(scratch, size, 'scratch')}; {read_command(size)}"
    return [
        Prepare("prepare", f"head -c {size} /dev/urandom >{SOURCE}", 120, size / 20e6),
        Measure("write", write, _slow(size), size / 0.3e6, parse=partial(_dd_readings, "write", size)),
        Measure("read", read, _slow(size), size / 5e6, parse=partial(_dd_readings, "read", size)),
        CleanUp("clean-up", f"rm -f {SOURCE}", 30, 0.1),
    ]


def _slow(size: int) -> float:
    return 60 + size / 50_000  # 0.05 MB/s and worse counts as hung


def uboot_steps(board: Board, size: int, unit: int) -> Sequence[Step]:
    """Write U-Boot's scratch region and read it; see `uboot_sf`. Rates in `unit` bytes/s."""
    bus, offset = board.options.ospi.uboot_bus, board.options.ospi.uboot_offset

    def parse(operation: str, outputs: Outputs) -> list[Reading]:
        value = uboot_sf.rate(output(outputs, CONSOLE), operation, offset, size, unit)
        return [Reading(f"{operation}_throughput", value)]

    return [
        Prepare("prepare", f"sf probe {bus} && {uboot_sf.fill(size)}", 60, 0.5),
        Measure(
            "write",
            uboot_sf.timed_write(offset, size),
            _slow(size),
            size / 0.3e6,
            parse=partial(parse, "write"),
        ),
        Measure(
            "read", uboot_sf.timed_read(offset, size), _slow(size), size / 2e6, parse=partial(parse, "read")
        ),
    ]


UBOOT_OPTIONS = tuple(("ospi", f"uboot_{key}") for key in ("bus", "offset", "size"))


def uboot_conditions(board: Board) -> Mapping[str, str]:
    """Where U-Boot writes."""
    bus, offset = board.options.ospi.uboot_bus, board.options.ospi.uboot_offset
    return {"uboot_bus": bus, "uboot_offset": f"{offset:#x}"}


def too_large(board: Board, size: int) -> str:
    """Why a row of `size` bytes is not measured (see `Benchmark.lacks`): U-Boot's scratch region
    of the board is smaller.
    """
    have = board.options.ospi.uboot_size
    if size <= have:
        return ""
    return (
        f"{board.file_name} lets U-Boot overwrite {have:#x} bytes and this row needs {size:#x}: "
        "targets.main.options.ospi.uboot_size"
    )


def other_flash(board: Board, case: Case) -> str:
    """A `Benchmark.lacks` for the summaries' rows of flash that the board does not have."""
    have = board.options.ospi.flash
    if have == case.params["flash"]:
        return ""
    return f"the flash of {board.file_name} is {have}: this row is for {case.params['flash']}"


def metrics(unit: Unit, *sides: str) -> tuple[Metric, ...]:
    """Throughput of `sides` in that order."""
    return tuple(
        Metric(
            f"{side}_throughput",
            unit,
            Direction.HIGHER,
            f"{side.capitalize()} Throughput",
            low=0.001,
            high=2_000_000 if unit is Unit.KIBIBYTE_PER_SECOND else 2_000,
        )
        for side in sides
    )


def _summary(size: int) -> Profile:
    file_size = f"{size >> 20} MB"
    return Profile(
        tuple(
            Case(f"{flash}|{file_size}", {"flash": flash, "file_size": file_size})
            for flash in ("OSPI NOR", "QSPI NAND")
        )
    )


# 50 MB is 0x3200000 bytes (inventory, uboot_flash_summary).
SUMMARY_PROFILES = {"full": _summary(50 << 20), "quick": _summary(1 << 20)}
"""The rows of the summaries in Linux and U-Boot."""


def summary_bytes(case: Case) -> int:
    """How much a row of the summaries moves."""
    return int(str(case.params["file_size"]).removesuffix(" MB")) << 20


def _dd_readings(side: str, size: int, outputs: Outputs) -> list[Reading]:
    return [Reading(f"{side}_throughput", dd.throughput(output(outputs, dd.TEXT_FILE), size, MEGABYTE))]
