"""Disks and cards: file systems and fio in Linux, and U-Boot's own timed reads and writes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families.disk import file_system_benchmark, fio_benchmark
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Plan, Prepare, Step, reading_of
from evmperf.benchmarks.tools import uboot
from evmperf.boards import yamlfile
from evmperf.boards.board import Board
from evmperf.model.results import Case

_FILE = "evmperf.tst"
_PATTERN = "5aa5c33c"
# Where what is read back goes: behind the largest size of the published tables.
_SECOND = "setexpr evmperf_second ${loadaddr} + 4000000"


def _tables(make: Callable[..., Benchmark], families: list[dict[str, Any]]) -> Iterator[Benchmark]:
    """A table for each of a family's kinds of file system, or `raw`: a part of name, title and section."""
    for family in families:
        kinds, name, title, section = (family.pop(key) for key in ("kinds", "name", "title", "section"))
        for kind in kinds:
            words = (word.format(kind.upper(), BOARD="{BOARD}") for word in section)
            named = {"name": name.format(kind), "title": title.format(kind.upper()), "section": tuple(words)}
            yield make(kind, **named, **family)


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


def _uboot(name: str, steps: Callable[[Board, str, int], Sequence[Step]]) -> Benchmark:
    """A table of reads and writes in U-Boot, whose `steps` are those of a number of bytes."""
    arguments = declared(__file__)[name]

    def of_case(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        return steps(board, arguments["driver"], int(str(case.params["size_hex"]), 16))

    return Benchmark(**arguments, steps=of_case)


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
        f"{uboot.TIME} {command}",
        _slow_s(size),
        size / 3e6,
        parse=reading_of(f"{side}_throughput", CONSOLE, rate, side, *asked),
    )


def _compare(size: int) -> str:
    """U-Boot text that fails unless what came back is what was written."""
    return f"cmp.b ${{loadaddr}} ${{evmperf_second}} {size:x}"


_LINUX = yamlfile.own("benchmarks/tables/linux_disks.yaml")

BENCHMARKS = (
    *_tables(file_system_benchmark, _LINUX["file_systems"]),
    *_tables(fio_benchmark, _LINUX["fio"]),
    _uboot("uboot_emmc_raw", _uboot_mmc),
    _uboot("uboot_mmcsd_fat", _uboot_fat),
    _uboot("uboot_ufs", _uboot_ufs),
)
