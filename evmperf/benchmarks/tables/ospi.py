"""Flash: UBIFS; of OSPI and QSPI the MTD's character device, and U-Boot."""

from collections.abc import Callable, Sequence

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families.disk import BUFFER_SIZES, SOURCE, file_system_benchmark
from evmperf.benchmarks.families.scratch import UBIFS, on_flash
from evmperf.benchmarks.step import CONSOLE, CleanUp, Measure, Parse, Plan, Prepare, Step, reading_of
from evmperf.benchmarks.tools import dd, uboot
from evmperf.boards.board import Board
from evmperf.model.results import Case
from evmperf.model.units import KIBIBYTE, MEBIBYTE, MEGABYTE

_DECLARED = declared(__file__)


def _raw_read_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    """Read an MTD partition with dd, whose time has six digits (`time -p` of the guides: 10 ms)."""
    size = int(case.params["file_size_mb"]) << 20
    find = on_flash("find_flash", board.options.ospi.device, size, "ospi.device")
    return [_read(find, size, 60 + size / 100_000, MEBIBYTE)]


def _raw_steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    """Write (erasing is not timed), compare and read the scratch partition's MTD character device."""
    scratch, size = board.options.ospi.scratch, _summary_bytes(case)
    guard = on_flash("guard_flash", scratch, size, "ospi.scratch")
    write = (
        f"{guard}; flash_erase -q $m 0 $((({size} + e - 1) / e)) && "
        f'dd if={SOURCE} of=$m bs=1M 2>"$OUT/{dd.TEXT_FILE}" && head -c {size} $m | cmp - {SOURCE}'
    )
    return [
        Prepare("prepare", f"head -c {size} /dev/urandom >{SOURCE}", 120, size / 20e6),
        Measure("write", write, _slow_s(size), size / 0.3e6, parse=_dd("write", size, MEGABYTE)),
        _read(on_flash("find_flash", scratch, size, "ospi.scratch"), size, _slow_s(size), MEGABYTE),
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


def _summary_bytes(case: Case) -> int:
    return int(str(case.params["file_size"]).removesuffix(" MB")) << 20


def _other_flash(board: Board, case: Case) -> str:
    """Why the board does not have a row of the summaries: its flash is another."""
    have = board.options.ospi.flash
    if have == case.params["flash"]:
        return ""
    return f"the flash of {board.file_name} is {have}: this row is for {case.params['flash']}"


def _uboot(name: str, size_of: Callable[[Case], int], unit: int) -> Benchmark:
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

    def lacks(board: Board, case: Case) -> str:
        have, need = board.options.ospi.uboot_size, size_of(case)
        if "flash" in case.params and (other := _other_flash(board, case)):
            return other
        if need <= have:
            return ""
        return (
            f"{board.file_name} lets U-Boot overwrite {have:#x} bytes and this row needs {need:#x}: "
            "targets.main.options.ospi.uboot_size"
        )

    def conditions(board: Board) -> dict[str, str]:
        bus, offset = board.options.ospi.uboot_bus, board.options.ospi.uboot_offset
        return {"uboot_bus": bus, "uboot_offset": f"{offset:#x}"}

    return Benchmark(**_DECLARED[name], steps=steps, conditions=conditions, lacks=lacks)


def _ubifs(driver: str, title: str, section: tuple[str, ...], size: int = 2 << 20) -> Benchmark:
    """UBIFS with a file of `size` bytes, in buffers that are no larger."""
    return file_system_benchmark(
        UBIFS,
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
    Benchmark(**_DECLARED["ospi_raw_read"], steps=_raw_read_steps),
    Benchmark(**_DECLARED["linux_flash_summary"], steps=_raw_steps, lacks=_other_flash),
    _uboot("uboot_flash_summary", _summary_bytes, MEGABYTE),
    _uboot("uboot_ospi", lambda case: int(str(case.params["size_hex"]), 16), KIBIBYTE),
)
