"""Flash: UBIFS; of OSPI and QSPI the MTD's character device, and U-Boot."""

from collections.abc import Callable, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Option, Place, Profile, noted
from evmperf.benchmarks.families import flash
from evmperf.benchmarks.families.disk import BUFFER_SIZES, SOURCE, file_system_benchmark
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Parse, Plan, Prepare, Step, reading_of
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import KIBIBYTE, MEBIBYTE, MEGABYTE, Unit
from evmperf.tools import dd, uboot


def _raw_read_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    """Read an MTD partition with dd, whose time has six digits (`time -p` of the guides: 10 ms)."""
    size = int(case.params["file_size_mb"]) << 20
    find = flash.find(board.options.ospi.device, size, "ospi.device")
    return [_read(find, size, 60 + size / 100_000, MEBIBYTE)]


def _raw_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    """Write (erasing is not timed), compare and read the scratch partition's MTD character device."""
    scratch, size = board.options.ospi.scratch, _summary_bytes(case)
    write = (
        f"{flash.guard(scratch, size, 'ospi')}; flash_erase -q $m 0 $((({size} + e - 1) / e)) && "
        f'dd if={SOURCE} of=$m bs=1M 2>"$OUT/{dd.TEXT_FILE}" && head -c {size} $m | cmp - {SOURCE}'
    )
    return [
        Prepare("prepare", f"head -c {size} /dev/urandom >{SOURCE}", 120, size / 20e6),
        Measure("write", write, _slow_s(size), size / 0.3e6, parse=_dd("write", size, MEGABYTE)),
        _read(flash.find(scratch, size, "ospi.scratch"), size, _slow_s(size), MEGABYTE),
        CleanUp("clean-up", f"rm -f {SOURCE}", 30, 0.1),
    ]


def _read(find: str, size: int, timeout_s: float, unit: int) -> Measure:
    """Read `size` bytes of what `find` finds in one go, as raw_perf.sh does; the rate is in `unit`."""
    command = f'{find}; dd if=$m of=/dev/null bs={size} count=1 2>"$OUT/{dd.TEXT_FILE}"'
    return Measure("read", command, timeout_s, size / 5e6, parse=_dd("read", size, unit))


def _dd(side: str, size: int, unit: int) -> Parse:
    return reading_of(f"{side}_throughput", dd.TEXT_FILE, dd.throughput, size, unit)


def _slow_s(size: int) -> float:
    return 60 + size / 50_000  # 0.05 MB/s and worse counts as hung


def _metrics(unit: Unit, *sides: str, title: str = "{} Throughput") -> tuple[Metric, ...]:
    high = 2_000_000 if unit is Unit.KIBIBYTE_PER_SECOND else 2_000
    return tuple(
        Metric(f"{side}_throughput", unit, Direction.HIGHER, title.format(side.capitalize()), 0.001, high)
        for side in sides
    )


# 50 MB is 0x3200000 bytes (inventory, uboot_flash_summary).
_SUMMARY_PROFILES = Profile.crossed(
    {"flash": ("OSPI NOR", "QSPI NAND"), "file_size": ("50 MB",)}, {"file_size": ("1 MB",)}
)
"""The rows of the summaries in Linux and U-Boot."""


def _summary_bytes(case: Case) -> int:
    return int(str(case.params["file_size"]).removesuffix(" MB")) << 20


def _other_flash(board: Board, case: Case) -> str:
    """Why the board does not have a row of the summaries: its flash is another."""
    have = board.options.ospi.flash
    if have == case.params["flash"]:
        return ""
    return f"the flash of {board.file_name} is {have}: this row is for {case.params['flash']}"


def _uboot(
    name: str,
    title: str,
    section: tuple[str, ...],
    metrics: tuple[Metric, ...],
    profiles: dict[str, Profile],
    *,
    size_of: Callable[[Case], int],
    unit: int,
    options: tuple[Option, ...] = (),
    lacks: Callable[[Board, Case], str] = lambda board, case: "",
) -> Benchmark:
    """A table of U-Boot's sf: its scratch region is written, and read. Rates are in `unit` bytes/s."""

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        size, offset = size_of(case), board.options.ospi.uboot_offset

        def parse(side: str) -> Parse:
            return reading_of(f"{side}_throughput", CONSOLE, uboot.sf_rate, side, offset, size, unit)

        write, read = uboot.sf_write(offset, size), uboot.sf_read(offset, size)
        fill = f"sf probe {board.options.ospi.uboot_bus} && {uboot.sf_fill(size)}"
        return [
            Prepare("prepare", fill, 60, 0.5),
            Measure("write", write, _slow_s(size), size / 0.3e6, parse=parse("write")),
            Measure("read", read, _slow_s(size), size / 2e6, parse=parse("read")),
        ]

    def too_large(board: Board, case: Case) -> str:
        have, need = board.options.ospi.uboot_size, size_of(case)
        if need <= have:
            return ""
        return (
            f"{board.file_name} lets U-Boot overwrite {have:#x} bytes and this row needs {need:#x}: "
            "targets.main.options.ospi.uboot_size"
        )

    def conditions(board: Board) -> dict[str, str]:
        bus, offset = board.options.ospi.uboot_bus, board.options.ospi.uboot_offset
        return {"uboot_bus": bus, "uboot_offset": f"{offset:#x}"}

    return Benchmark(
        name=name,
        driver="ospi",
        title=title,
        section=section,
        metrics=metrics,
        profiles=profiles,
        place=Place.UBOOT,
        steps=steps,
        options=(*(("ospi", f"uboot_{key}") for key in ("bus", "offset", "size")), *options),
        conditions=conditions,
        lacks=lambda board, case: lacks(board, case) or too_large(board, case),
    )


def _ubifs(driver: str, title: str, section: tuple[str, ...], size: int = 2 << 20) -> Benchmark:
    """UBIFS with a file of `size` bytes, in buffers that are no larger."""
    return file_system_benchmark(
        flash.ubifs(driver),
        driver=driver,
        full_bytes=size,
        quick_bytes=1 << 20,
        buffer_sizes=[buffer for buffer in BUFFER_SIZES if buffer <= size],
        name=f"{driver}_ubifs",
        title=title,
        section=section,
    )


BENCHMARKS = (
    _ubifs("ospi", "OSPI Flash Driver", ("Linux OSPI Flash Driver", "UBIFS")),
    _ubifs("spi", "SPI UBIFS", ("SPI Flash Driver",)),
    _ubifs("nand", "NAND UBIFS", ("NAND Driver",), 5 << 20),
    Benchmark(
        name="ospi_raw_read",
        driver="ospi",
        title="OSPI Raw Flash Driver",
        section=("OSPI Flash Driver", "{BOARD}", "RAW"),
        metrics=_metrics(Unit.MEBIBYTE_PER_SECOND, "read", title="Raw {} Throughput"),
        profiles=Profile.both("file_size_mb", [50], [4]),
        steps=_raw_read_steps,
        tools=("dd",),
        options=(("ospi", "device"),),
        conditions=noted("ospi", "device"),
    ),
    Benchmark(
        name="linux_flash_summary",
        driver="ospi",
        title="Linux QSPI/OSPI throughput summary",
        section=("Linux QSPI/OSPI Driver",),
        metrics=_metrics(Unit.MEGABYTE_PER_SECOND, "read", "write"),
        profiles=_SUMMARY_PROFILES,
        steps=_raw_steps,
        tools=("dd", "flash_erase"),
        options=(("ospi", "scratch"), ("ospi", "flash")),
        conditions=noted("ospi", "scratch"),
        lacks=_other_flash,
    ),
    _uboot(
        "uboot_flash_summary",
        "U-Boot QSPI/OSPI throughput summary",
        ("U-Boot QSPI/OSPI Driver",),
        _metrics(Unit.MEGABYTE_PER_SECOND, "read", "write"),
        _SUMMARY_PROFILES,
        size_of=_summary_bytes,
        unit=MEGABYTE,
        options=(("ospi", "flash"),),
        lacks=_other_flash,
    ),
    _uboot(
        "uboot_ospi",
        "U-Boot QSPI/OSPI",
        ("UBoot QSPI/OSPI Driver", "{BOARD}"),
        _metrics(Unit.KIBIBYTE_PER_SECOND, "write", "read"),
        Profile.both("size_hex", ("400000", "800000", "1000000", "2000000"), ("40000", "80000")),
        size_of=lambda case: int(str(case.params["size_hex"]), 16),
        unit=KIBIBYTE,
    ),
)
