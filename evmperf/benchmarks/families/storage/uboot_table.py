"""U-Boot tables: its own timed reads and writes of a scratch partition or of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import uboot_time

# U-Boot's clock has milliseconds: less than this takes none on a fast device.
_SMALL_SIZES = {"full": ("400000", "800000", "1000000"), "quick": ("400000", "800000")}
_FILE = "evmperf.tst"
_PATTERN = "5aa5c33c"
# Where what is read back goes: behind the largest size of the published tables.
_SECOND = "setexpr evmperf_second ${loadaddr} + 4000000"


def uboot_mmc_benchmark(*, name: str, driver: str, title: str, section: tuple[str, ...]) -> Benchmark:
    """U-Boot's raw read and write of the scratch partition; the write puts back what was read."""

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        device = board.text(driver, "uboot_device")
        size = _size(case)
        sectors = size // uboot_time.SECTOR_BYTES
        find = _find(board, driver, "mmc", sectors)
        return [
            Prepare("prepare", f"mmc dev {device} && {find}", 30),
            *(
                _timed(
                    side,
                    f"mmc {side} ${{loadaddr}} ${{evmperf_start}} {sectors:x}",
                    size,
                    lambda text, side=side: uboot_time.mmc_rate(text, side, sectors),  # type: ignore[misc]
                )
                for side in ("read", "write")
            ),
        ]

    return _benchmark(
        name,
        driver,
        title,
        section,
        sizes={"full": ("2000000", "4000000"), "quick": ("200000", "400000")},
        option="uboot_partition",
        steps=steps,
    )


def uboot_scsi_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...], start: str
) -> Benchmark:
    """U-Boot's raw write and read of the scratch partition of a SCSI disk with 4096-byte blocks.

    What was there is written back, read again and compared. `start` is the command that wakes the
    controller.
    """

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        device = board.text(driver, "uboot_device")
        size = _size(case)
        blocks = size // uboot_time.SCSI_BLOCK_BYTES
        place = f"${{evmperf_start}} {blocks:x}"
        return [
            Prepare(
                "prepare",
                f"{start}; scsi scan; scsi device {device} && "
                f"{_find(board, driver, 'scsi', blocks)} && {_SECOND} && "
                f"scsi read ${{loadaddr}} {place}",
                _slow(size),
            ),
            _timed(
                "write",
                f"scsi write ${{loadaddr}} {place}",
                size,
                lambda text: uboot_time.scsi_rate(text, "write", blocks),
            ),
            _timed(
                "read",
                f"scsi read ${{evmperf_second}} {place} && {_compare(size)}",
                size,
                lambda text: uboot_time.scsi_rate(text, "read", blocks),
            ),
        ]

    return _benchmark(name, driver, title, section, sizes=_SMALL_SIZES, option="uboot_partition", steps=steps)


def uboot_fat_benchmark(*, name: str, driver: str, title: str, section: tuple[str, ...]) -> Benchmark:
    """U-Boot writing a file on the card's FAT partition, and reading it back.

    The file is a pattern of the memory's, not one that came over the network; it is compared and
    removed.
    """

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        device = board.text(driver, "uboot_device")
        place = f"mmc {device}:{board.text(driver, 'uboot_fat_partition')}"
        size = _size(case)
        # Without `else`, U-Boot's shell would end with the condition's status.
        remove = f"if fatsize {place} {_FILE}; then fatrm {place} {_FILE}; else true; fi"
        return [
            Prepare(
                "prepare",
                f"{remove}; mmc dev {device} && {_SECOND} && "
                f"mw.l ${{loadaddr}} {_PATTERN} {size // 4:x} && "
                f"mw.l ${{evmperf_second}} 0 {size // 4:x}",
                _slow(size),
            ),
            _timed(
                "write",
                f"fatwrite {place} ${{loadaddr}} {_FILE} {size:x}",
                size,
                lambda text: uboot_time.file_rate(text, "write", size),
            ),
            _timed(
                "read",
                f"fatload {place} ${{evmperf_second}} {_FILE} && {_compare(size)}",
                size,
                lambda text: uboot_time.file_rate(text, "read", size),
            ),
            CleanUp("clean-up", remove, 30),
        ]

    return _benchmark(
        name, driver, title, section, sizes=_SMALL_SIZES, option="uboot_fat_partition", steps=steps
    )


def _benchmark(
    name: str,
    driver: str,
    title: str,
    section: tuple[str, ...],
    *,
    sizes: Mapping[str, Sequence[str]],
    option: str,
    steps: Callable[[Board, Case, Plan], Sequence[Step]],
) -> Benchmark:
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
        profiles={
            profile: Profile(tuple(Case(size, {"size_hex": size}) for size in row))
            for profile, row in sizes.items()
        },
        place=Place.UBOOT,
        steps=steps,
        options=((driver, "uboot_device"), (driver, option)),
        conditions=lambda board: {key: board.text(driver, key) for key in ("uboot_device", option)},
    )


def _size(case: Case) -> int:
    return int(str(case.params["size_hex"]), 16)


def _slow(size: int) -> float:
    return 60 + size / 100_000  # 0.1 MB/s and worse counts as hung


def _find(board: Board, driver: str, interface: str, blocks: int) -> str:
    """U-Boot text that puts the scratch partition's first block into `evmperf_start`."""
    where = f"{interface} {board.text(driver, 'uboot_device')}"
    partition = board.text(driver, "uboot_partition")
    return (
        f"part start {where} {partition} evmperf_start && "
        f"part size {where} {partition} evmperf_size && itest ${{evmperf_size}} -ge {blocks:x}"
    )


def _timed(side: str, command: str, size: int, rate: Callable[[str], float]) -> Measure:
    return Measure(
        side,
        f"time {command}",
        _slow(size),
        size / 3e6,
        parse=lambda outputs: [Reading(f"{side}_throughput", rate(output(outputs, CONSOLE)))],
    )


def _compare(size: int) -> str:
    """U-Boot text that fails unless what came back is what was written."""
    return f"cmp.b ${{loadaddr}} ${{evmperf_second}} {size:x}"
