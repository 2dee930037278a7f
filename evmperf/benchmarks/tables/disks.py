"""Disks and cards: file systems and fio in Linux, and U-Boot's own timed reads and writes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile, noted
from evmperf.benchmarks.families.disk import file_system_benchmark, fio_benchmark
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Plan, Prepare, Step, reading_of
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit
from evmperf.tools import uboot

# U-Boot's clock has milliseconds: less than this takes none on a fast device.
_SMALL_SIZES = (("400000", "800000", "1000000"), ("400000", "800000"))
_FILE = "evmperf.tst"
_PATTERN = "5aa5c33c"
# Where what is read back goes: behind the largest size of the published tables.
_SECOND = "setexpr evmperf_second ${loadaddr} + 4000000"


def _tables(
    make: Callable[..., Benchmark], kinds: str, driver: str, name: str, *guide: Any, **more: Any
) -> list[Benchmark]:
    """A table for each of the `kinds` of file system, or `raw`, which goes into name, title and section."""
    title, section = guide
    return [
        make(
            kind,
            driver=driver,
            name=name.format(kind),
            title=title.format(kind.upper()),
            section=tuple(word.format(kind.upper(), BOARD="{BOARD}") for word in section),
            **more,
        )
        for kind in kinds.split()
    ]


_file_systems = partial(_tables, file_system_benchmark)
_fio = partial(_tables, fio_benchmark)
_THREE = "ext2 ext4 vfat"


def _uboot_mmc(board: Board, driver: str, size: int) -> Sequence[Step]:
    """Raw read and write of the scratch partition; the write puts back what was read."""
    count = size // uboot.SECTOR_BYTES
    place = f"${{loadaddr}} ${{evmperf_start}} {count:x}"
    find = _find(board, driver, "mmc", count)
    return [
        Prepare("prepare", f"mmc dev {board.text(driver, 'uboot_device')} && {find}", 30),
        _timed("read", f"mmc read {place}", size, uboot.disk_rate, count, "mmc"),
        _timed("write", f"mmc write {place}", size, uboot.disk_rate, count, "mmc"),
    ]


def _uboot_ufs(board: Board, driver: str, size: int) -> Sequence[Step]:
    """Raw write and read of a disk's scratch partition, 4096-byte blocks; its content is put back."""
    count = size // uboot.SCSI_BLOCK_BYTES
    place = f"${{evmperf_start}} {count:x}"
    start = f"ufs init; scsi scan; scsi device {board.text(driver, 'uboot_device')}"
    find = f"{_find(board, driver, 'scsi', count)} && {_SECOND}"
    back = f"scsi read ${{evmperf_second}} {place} && {_compare(size)}"
    return [
        Prepare("prepare", f"{start} && {find} && scsi read ${{loadaddr}} {place}", _slow_s(size)),
        _timed("write", f"scsi write ${{loadaddr}} {place}", size, uboot.disk_rate, count, "scsi"),
        _timed("read", back, size, uboot.disk_rate, count, "scsi"),
    ]


def _uboot_fat(board: Board, driver: str, size: int) -> Sequence[Step]:
    """Writing a pattern to a file on the card's FAT partition, reading it back, comparing, removing it."""
    device = board.text(driver, "uboot_device")
    place = f"mmc {device}:{board.text(driver, 'uboot_fat_partition')}"
    # Without `else`, U-Boot's shell would end with the condition's status.
    remove = f"if fatsize {place} {_FILE}; then fatrm {place} {_FILE}; else true; fi"
    fill = f"mw.l ${{loadaddr}} {_PATTERN} {size // 4:x} && mw.l ${{evmperf_second}} 0 {size // 4:x}"
    back = f"fatload {place} ${{evmperf_second}} {_FILE} && {_compare(size)}"
    return [
        Prepare("prepare", f"{remove}; mmc dev {device} && {_SECOND} && {fill}", _slow_s(size)),
        _timed("write", f"fatwrite {place} ${{loadaddr}} {_FILE} {size:x}", size, uboot.file_rate, size),
        _timed("read", back, size, uboot.file_rate, size),
        CleanUp("clean-up", remove, 30),
    ]


def _uboot(
    driver: str,
    name: str,
    title: str,
    section: tuple[str, ...],
    steps: Callable[[Board, str, int], Sequence[Step]],
    *,
    sizes: tuple[Sequence[str], Sequence[str]] = _SMALL_SIZES,
    option: str = "uboot_partition",
) -> Benchmark:
    """A table of reads and writes in U-Boot, whose `steps` are those of a number of bytes."""

    def of_case(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        return steps(board, driver, int(str(case.params["size_hex"]), 16))

    better, unit = Direction.HIGHER, Unit.KIBIBYTE_PER_SECOND
    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=tuple(
            Metric(f"{side}_throughput", unit, better, f"{side.capitalize()} Throughput", 1.0, 20_000_000)
            for side in ("write", "read")
        ),
        profiles=Profile.both("size_hex", *sizes),
        place=Place.UBOOT,
        steps=of_case,
        options=((driver, "uboot_device"), (driver, option)),
        conditions=noted(driver, "uboot_device", option),
    )


def _slow_s(size: int) -> float:
    return 60 + size / 100_000  # 0.1 MB/s and worse counts as hung


def _find(board: Board, driver: str, interface: str, blocks: int) -> str:
    """U-Boot text that puts the scratch partition's first block into `evmperf_start`."""
    where = f"{interface} {board.text(driver, 'uboot_device')}"
    partition = board.text(driver, "uboot_partition")
    return (
        f"part start {where} {partition} evmperf_start && "
        f"part size {where} {partition} evmperf_size && itest ${{evmperf_size}} -ge {blocks:x}"
    )


def _timed(side: str, command: str, size: int, rate: Callable[..., float], *asked: int | str) -> Measure:
    """A timed command that moves `size` bytes; `rate` takes its text, the side and what was `asked`."""
    return Measure(
        side,
        f"time {command}",
        _slow_s(size),
        size / 3e6,
        parse=reading_of(f"{side}_throughput", CONSOLE, rate, side, *asked),
    )


def _compare(size: int) -> str:
    """U-Boot text that fails unless what came back is what was written."""
    return f"cmp.b ${{loadaddr}} ${{evmperf_second}} {size:x}"


_USB = ("USB Driver", "USB Host Controller")
_NVME = ("PCIe Driver", "PCIe-NVMe-SSD")

BENCHMARKS = (
    *_file_systems(_THREE, "emmc", "emmc_{}", "EMMC {}", ("EMMC Driver", "EMMC {}")),
    *_fio("ext4 raw", "emmc", "emmc_{}_fio_1g", "EMMC {} FIO 1G", ("EMMC Driver", "EMMC {} FIO 1G")),
    _uboot(
        "emmc",
        "uboot_emmc_raw",
        "UBOOT EMMC RAW",
        ("UBoot EMMC Driver",),
        _uboot_mmc,
        sizes=(("2000000", "4000000"), ("200000", "400000")),
    ),
    *_file_systems("ext2 ext3 ext4", "mmcsd", "mmcsd_{}", "MMC {}", ("MMCSD", "MMC {}"), heading="Raw"),
    *_file_systems("vfat", "mmcsd", "mmcsd_{}", "MMC {}", ("MMCSD", "MMC {}")),
    *_fio("ext4 raw", "mmcsd", "mmcsd_{}_fio_1g", "MMC {} FIO 1G", ("MMCSD", "MMC {} FIO 1G")),
    _uboot(
        "mmcsd",
        "uboot_mmcsd_fat",
        "UBOOT MMCSD FAT",
        ("UBoot MMCSD", "UBOOT MMCSD FAT"),
        _uboot_fat,
        option="uboot_fat_partition",
    ),
    *_file_systems(_THREE, "sata", "sata_{}_1g", "SATA {} 1G", ("SATA Driver",), full_bytes=1 << 30),
    *_fio("ext4", "sata", "sata_{}_fio_1g", "SATA {} FIO 1G", ("SATA Driver", "SATA {} FIO 1G")),
    *_file_systems(
        _THREE, "msata", "msata_{}_1g", "mSATA {} SSD 1G", ("SATA Driver", "mSATA Driver"), full_bytes=1 << 30
    ),
    *_fio("ext4 raw", "ufs", "ufs_{}_fio", "UFS {} FIO", ("UFS Driver",)),
    _uboot("ufs", "uboot_ufs", "U-Boot UFS", ("UBoot UFS Driver", "{BOARD}"), _uboot_ufs),
    *_file_systems(_THREE, "pcie", "pcie_nvme_{}", "PCIe NVMe {}", _NVME),
    *_file_systems(_THREE, "usb", "usbhost_msc_{}", "USBHOST MSC {}", _USB),
    *_fio("ext4", "usb", "usbhost_msc_{}_fio", "USB host mass storage {} FIO", (*_USB, "{BOARD}")),
    *_fio("raw", "usb", "usbhost_msc_{}_fio", "USBHOST MSC {} FIO", _USB),
    *_fio("ext4", "pcie", "pcie_nvme_{}_fio_10g", "PCIE SSD {} FIO 10G", (*_NVME, "{BOARD}"), size="10g"),
)
