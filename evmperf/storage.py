"""Steps and tables that the storage benchmarks share (eMMC, SD, NVMe, USB): fio and file systems.

Everything destructive goes through `guard`, which looks on the board itself that the scratch
partition is not, and does not hold, the root file system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evmperf.benchmark import Benchmark, Outputs, Place, Profile, Step
from evmperf.board import Board
from evmperf.model import Case, Direction, Metric, Reading
from evmperf.outputs import output
from evmperf.tools import dd, fio, mpstat, uboot_time
from evmperf.units import Unit, size_bytes

MOUNT_POINT = "/tmp/evmperf/mnt"
_SOURCE = "/dev/shm/evmperf-source"

_MAKE = {
    "ext4": "mkfs.ext4 -F -q",
    "ext3": "mkfs.ext3 -F -q",
    "ext2": "mkfs.ext2 -F -q",
    "vfat": "mkfs.vfat",
}
_MOUNT_OPTIONS = {
    # Without noinit_itable the kernel goes on writing inode tables under the measurement.
    "ext4": "async,noinit_itable",
}


def guard(partition: str) -> str:
    """Shell text that fails unless `partition` may be overwritten, and unmounts it."""
    return (
        'no() { echo "$*: name another scratch partition in the board file"; exit 3; }; '
        f'd=$(readlink -f {partition}); [ -b "$d" ] || no "{partition} is not there"; '
        "s=$(readlink -f /sys/class/block/${d##*/}); "
        "r=$(readlink -f /sys/dev/block/$(mountpoint -d /)); "
        f'case "$r/" in "$s"/*) no "{partition} holds the mounted root";; esac; '
        # A device that others are built on (LVM, RAID, encryption) may hold the root indirectly.
        'for n in "${d##*/}" $(cd "$s" && ls -d */partition 2>/dev/null | cut -d/ -f1); do '
        f'[ -z "$(ls /sys/class/block/$n/holders)" ] || no "{partition} is in use by another"; '
        'while grep -q "^/dev/$n " /proc/mounts; do umount /dev/$n || exit 3; done; done'
    )


def metrics(kind: str) -> tuple[Metric, ...]:
    """The four columns of a storage table; `kind` is EXT4, Raw, ... as the guide heads them."""
    return tuple(
        metric
        for side in ("write", "read")
        for metric in (
            Metric(
                f"{side}_throughput",
                Unit.MEGABYTE_PER_SECOND,
                Direction.HIGHER,
                f"{side.capitalize()} {kind} Throughput",
                low=0.001,
                high=20_000,
            ),
            Metric(
                f"{side}_cpu_load",
                Unit.PERCENT,
                Direction.LOWER,
                f"{side.capitalize()} {kind} CPU Load",
                low=0.0,
                high=100.0,
            ),
        )
    )


FIO_BLOCK_SIZES = ("1m", "4m", "4k", "256k")
BUFFER_SIZES = (102400, 262144, 524288, 1048576, 5242880)
"""Bytes; the rows of the file system tables."""


def fio_profiles(full_size: str, quick_size: str) -> dict[str, Profile]:
    """Published parameters, and short ones whose figures are only a first look."""

    def profile(size: str, runtime_s: int, settle_s: int) -> Profile:
        return Profile(
            tuple(
                Case(
                    block_size,
                    {
                        "block_size": block_size,
                        "size": size,
                        "runtime_s": runtime_s,
                        "settle_s": settle_s,
                    },
                )
                for block_size in FIO_BLOCK_SIZES
            )
        )

    return {"full": profile(full_size, 60, 5), "quick": profile(quick_size, 3, 1)}


def file_system_profiles() -> dict[str, Profile]:
    """100 MiB written five times and read once, as published; 5 MiB once for a first look."""

    def profile(file_bytes: int, repeats: int) -> Profile:
        cases = tuple(
            Case(str(size), {"buffer_size": size, "file_bytes": file_bytes})
            for size in BUFFER_SIZES
        )
        return Profile(cases, repeats)

    return {"full": profile(100 << 20, 5), "quick": profile(5 << 20, 1)}


def fio_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...], file_system: str | None
) -> Benchmark:
    """A fio table on the driver's scratch partition, on a file system or on the raw partition."""

    def steps(board: Board, case: Case, _: Profile) -> Sequence[Step]:
        partition = board.option(driver, "scratch")
        if file_system is None:
            target = f"--filename={partition}"
            return [_prepare(guard(partition)), *_fio_steps(driver, target, case)]
        target = f"--directory={MOUNT_POINT}"
        return [
            _prepare(_fresh(partition, file_system)),
            *_fio_steps(driver, target, case),
            _clean_up(),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=metrics(file_system.upper() if file_system else "Raw"),
        profiles=fio_profiles("1g", "16m"),
        place=Place.SHELL,
        steps=steps,
        tools=("fio", "mpstat"),
        options=((driver, "scratch"),),
        conditions=_conditions(driver),
    )


def file_system_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...], file_system: str
) -> Benchmark:
    """A file system table: buffered writes with a final fsync, and a cold read, through dd.

    It stands in for LTP-DDT's filesystem_tests, with the same bytes, buffers, fsync inside the
    timed part, and cold cache; `dd` is recorded as the tool, so the two are never compared.
    """

    def steps(board: Board, case: Case, profile: Profile) -> Sequence[Step]:
        partition = board.option(driver, "scratch")
        size, buffer = int(case.params["file_bytes"]), int(case.params["buffer_size"])
        slow = 60 + size / 100_000  # 0.1 MB/s and worse counts as hung
        file = f"{MOUNT_POINT}/test_file"
        write = f"rm -f {file}; sync; " + _timed_dd(f"if={_SOURCE} of={file} conv=fsync", buffer)
        read = (
            f"sync; umount {MOUNT_POINT} && {_mount(partition, file_system)} && "
            f"echo 3 >/proc/sys/vm/drop_caches && " + _timed_dd(f"if={file} of=/dev/null", buffer)
        )
        source = f"head -c {size} /dev/urandom >{_SOURCE}"
        return [
            _prepare(f"{source} && {{ {_fresh(partition, file_system)}; }}"),
            *(
                Step(
                    f"write{repetition}",
                    write,
                    slow,
                    2 + size / 50e6,
                    lambda outputs: _dd_readings(outputs, "write", size),
                    repetition,
                )
                for repetition in range(profile.repeats)
            ),
            Step("read", read, slow, 2, lambda outputs: _dd_readings(outputs, "read", size)),
            _clean_up(f" && rm -f {_SOURCE}"),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=metrics(file_system.upper()),
        profiles=file_system_profiles(),
        place=Place.SHELL,
        steps=steps,
        tools=("dd", _MAKE[file_system].split()[0]),
        options=((driver, "scratch"),),
        conditions=_conditions(driver),
    )


def uboot_mmc_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...]
) -> Benchmark:
    """U-Boot's raw read and write of the scratch partition; the write puts back what was read."""

    def steps(board: Board, case: Case, _: Profile) -> Sequence[Step]:
        device = board.option(driver, "uboot_device")
        partition = board.option(driver, "uboot_partition")
        size = int(str(case.params["size_hex"]), 16)
        sectors = size // uboot_time.SECTOR_BYTES
        slow = 60 + size / 100_000
        return [
            Step(
                "prepare",
                f"mmc dev {device} && part start mmc {device} {partition} evmperf_start && "
                f"part size mmc {device} {partition} evmperf_size && "
                f"itest ${{evmperf_size}} -ge {sectors:x}",
                30,
            ),
            *(
                Step(
                    side,
                    f"time mmc {side} ${{loadaddr}} ${{evmperf_start}} {sectors:x}",
                    slow,
                    size / 3e6,
                    lambda outputs, side=side: [  # type: ignore[misc]
                        Reading(
                            f"{side}_throughput",
                            uboot_time.mmc_rate(outputs["console"], side, sectors),
                        )
                    ],
                )
                for side in ("read", "write")
            ),
        ]

    def profile(*sizes: str) -> Profile:
        return Profile(tuple(Case(size, {"size_hex": size}) for size in sizes))

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=tuple(
            Metric(
                f"{side}_throughput",
                Unit.KIBIBYTE_PER_SECOND,
                Direction.HIGHER,
                f"{side.capitalize()} Throughput",
                low=1.0,
                high=20_000_000,
            )
            for side in ("write", "read")
        ),
        profiles={"full": profile("2000000", "4000000"), "quick": profile("200000", "400000")},
        place=Place.UBOOT,
        steps=steps,
        options=((driver, "uboot_device"), (driver, "uboot_partition")),
        conditions=lambda board: {"uboot_device": str(board.option(driver, "uboot_device"))},
    )


def _conditions(driver: str) -> Callable[[Board], Mapping[str, str]]:
    def conditions(board: Board) -> Mapping[str, str]:
        return {"scratch": board.option(driver, "scratch")}

    return conditions


def _prepare(command: str) -> Step:
    # Making a file system on a slow, large partition takes minutes.
    return Step("prepare", command, 600, 2)


def _clean_up(more: str = "") -> Step:
    unmount = f"! mountpoint -q {MOUNT_POINT} || umount {MOUNT_POINT}"
    return Step("clean-up", f"{{ {unmount}; }}{more}", 120, 0.5, always=True)


def _mount(partition: str, file_system: str) -> str:
    options = _MOUNT_OPTIONS.get(file_system, "async")
    return f"mount -t {file_system} -o {options} {partition} {MOUNT_POINT}"


def _fresh(partition: str, file_system: str) -> str:
    return (
        f"{guard(partition)}; {_MAKE[file_system]} {partition} && mkdir -p {MOUNT_POINT} && "
        f"{_mount(partition, file_system)}"
    )


def _fio_steps(driver: str, target: str, case: Case) -> list[Step]:
    runtime_s, settle_s = int(case.params["runtime_s"]), int(case.params["settle_s"])
    size, name = str(case.params["size"]), f"{driver}_TEST"
    steps = []
    for side in ("write", "read"):
        if side == "read":
            fill = fio.fill_command(target=target, size=size, name=name)
            steps.append(Step("fill", fill, 60 + size_bytes(size) / 100_000, 3))
        job = fio.command(
            target=target,
            rw=side,
            block_size=str(case.params["block_size"]),
            size=size,
            runtime_s=runtime_s,
            name=name,
        )
        watch = mpstat.command(runtime_s - settle_s)
        steps.append(
            Step(
                side,
                # fio stays in the foreground, so that Ctrl-C reaches it.
                f"(sleep {settle_s}; {watch}) & {job}; r=$?; wait; exit $r",
                runtime_s * 2 + 120,
                runtime_s + 2,
                lambda outputs, side=side: _fio_readings(outputs, side),  # type: ignore[misc]
            )
        )
    return steps


def _fio_readings(outputs: Outputs, side: str) -> list[Reading]:
    text = output(outputs, fio.JSON_FILE)
    return [
        Reading(f"{side}_throughput", fio.throughput(text, side)),
        Reading(f"{side}_cpu_load", mpstat.load(output(outputs, mpstat.JSON_FILE))),
    ]


def _timed_dd(what: str, buffer: int) -> str:
    return (
        f"{mpstat.snapshot(mpstat.STAT_BEFORE)}; "
        f'dd {what} bs={buffer} 2>"$OUT/{dd.TEXT_FILE}"; r=$?; '
        f"{mpstat.snapshot(mpstat.STAT_AFTER)}; exit $r"
    )


def _dd_readings(outputs: Outputs, side: str, size: int) -> list[Reading]:
    before, after = output(outputs, mpstat.STAT_BEFORE), output(outputs, mpstat.STAT_AFTER)
    return [
        Reading(f"{side}_throughput", dd.throughput(output(outputs, dd.TEXT_FILE), size)),
        Reading(f"{side}_cpu_load", mpstat.stat_load(before, after)),
    ]
