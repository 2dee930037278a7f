"""Tables of disks and cards under Linux: file systems through dd, and fio."""

from collections.abc import Sequence
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Profile, noted, percentage
from evmperf.benchmarks.families import processor, scratch
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, output, readings
from evmperf.benchmarks.tools import dd, fio, mpstat
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.units import Unit, size_bytes

BUFFER_SIZES = (102400, 262144, 524288, 1048576, 5242880)
"""Bytes; the rows of the file system tables."""

SOURCE = "/dev/shm/evmperf-source"
"""Random data that is written, made on the board before a measurement."""

_LARGE = 256 << 20
"""Bytes above which /dev/shm, half of a board's memory, may be too small."""

_FILE = f"{scratch.MOUNT_POINT}/test_file"

_BLOCK_SIZES = ("1m", "4m", "4k", "256k")
_FILLED = "reads what a fill wrote"
"""TI's read follows the timed write, which may not have got through the file."""


def _metrics(kind: str) -> tuple[Metric, ...]:
    """The four columns of a storage table; `kind` is EXT4, Raw, ... as the guide heads them."""
    better, unit = Direction.HIGHER, Unit.MEGABYTE_PER_SECOND
    metrics: list[Metric] = []
    for side in ("write", "read"):
        head = f"{side.capitalize()} {kind}"
        metrics.append(Metric(f"{side}_throughput", unit, better, f"{head} Throughput", 0.001, 20_000))
        metrics.append(percentage(f"{side}_cpu_load", f"{head} CPU Load"))
    return tuple(metrics)


def _readings(side: str, rate: float, load: float) -> list[Reading]:
    return readings(**{f"{side}_throughput": rate, f"{side}_cpu_load": load})


def file_system_benchmark(
    kind: str | scratch.FileSystem,
    *,
    driver: str,
    heading: str = "",
    full_bytes: int = 100 << 20,
    quick_bytes: int = 5 << 20,
    buffer_sizes: Sequence[int] = BUFFER_SIZES,
    **guide: Any,
) -> Benchmark:
    """A table of a file system: a file written five times and read once, as published, and a smaller one.
    `heading` is how the guide heads its columns; `guide` are name, title and section.

    dd stands in for LTP-DDT's filesystem_tests, with the same bytes, buffers, fsync inside the timed part,
    and cold cache. As there, only the first of the writes makes the file: the others write over it.
    """
    system = scratch.on_block_device(kind, driver) if isinstance(kind, str) else kind

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        partition = board.text(driver, "scratch")
        size, buffer = int(case.params["file_bytes"]), int(case.params["buffer_size"])
        slow = 60 + size / 100_000  # 0.1 MB/s and worse counts as hung

        def measure(side: str, before: str, files: str, expect_s: float, repetition: int = 0) -> Measure:
            timed = mpstat.around(f'dd {files} bs={buffer} 2>"$OUT/{dd.TEXT_FILE}"')
            name = f"write{repetition}" if side == "write" else side

            def parse(outputs: Outputs) -> list[Reading]:
                rate = dd.throughput(output(outputs, dd.TEXT_FILE), size)
                return _readings(side, rate, processor.load(outputs))

            command = f"sync; {before}{timed}"
            return Measure(name, command, slow, expect_s, parse=parse, repetition=repetition)

        source = f"head -c {size} /dev/urandom >{SOURCE}"
        if size > _LARGE:
            source = f"mount -o remount,size={size + _LARGE} /dev/shm && {source}"
        mount = f"umount {scratch.MOUNT_POINT} && {system.mount(partition)}"
        cold = f"{mount} && echo 3 >/proc/sys/vm/drop_caches && "
        release = f" && {system.release(partition)}" if system.release else ""
        to_file = f"if={SOURCE} of={_FILE} conv=fsync,notrunc"
        return [
            scratch.prepare(f"{source} && {{ {system.fresh(partition)}; }}"),
            *(measure("write", "", to_file, 2 + size / 50e6, number) for number in range(plan.repeats)),
            measure("read", cold, f"if={_FILE} of=/dev/null", 2),
            scratch.clean_up(f" && rm -f {SOURCE}{release}"),
        ]

    return _table(
        driver,
        heading or system.name.upper(),
        "dd from memory, over the same file",
        profiles=Profile.both(
            "buffer_size", buffer_sizes, repeats=(5, 1), file_bytes=(full_bytes, quick_bytes)
        ),
        steps=steps,
        tools=("dd", *system.tools),
        version=2,
        **guide,
    )


def _table(driver: str, heading: str, variant: str, **more: Any) -> Benchmark:
    return Benchmark(
        driver=driver,
        metrics=_metrics(heading),
        options=((driver, "scratch"),),
        conditions=noted(driver, "scratch", **{VARIANT: variant}),
        **more,
    )


def fio_benchmark(kind: str, *, driver: str, size: str = "1g", **guide: Any) -> Benchmark:
    """A fio table on the driver's scratch partition, on a file system or "raw": direct, asynchronous writes
    and reads of four block sizes, in `size` bytes; `guide` are name, title and section.
    """

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        partition = board.text(driver, "scratch")
        if kind == "raw":
            target = f"--filename={partition}"
            return [scratch.prepare(scratch.guard(partition, driver)), *_fio_steps(driver, target, case)]
        return [
            scratch.prepare(scratch.on_block_device(kind, driver).fresh(partition)),
            *_fio_steps(driver, f"--directory={scratch.MOUNT_POINT}", case),
            scratch.clean_up(),
        ]

    sizes: Any = {"size": (size, "16m"), "runtime_s": (60, 3), "settle_s": (5, 1)}
    return _table(
        driver,
        "Raw" if kind == "raw" else kind.upper(),
        _FILLED,
        profiles=Profile.both("block_size", _BLOCK_SIZES, **sizes),
        steps=steps,
        tools=("fio", "mpstat"),
        **guide,
    )


def _fio_steps(driver: str, target: str, case: Case) -> list[Step]:
    runtime_s, settle_s = int(case.params["runtime_s"]), int(case.params["settle_s"])
    size, block_size = str(case.params["size"]), str(case.params["block_size"])
    job, watch = f"{driver}_TEST", mpstat.command(runtime_s - settle_s)

    def measure(side: str) -> Measure:
        sizes = {"block_size": block_size, "size": size}
        command = fio.command(target=target, rw=side, **sizes, runtime_s=runtime_s, name=job)

        def parse(outputs: Outputs) -> list[Reading]:
            text, watched = output(outputs, fio.JSON_FILE), output(outputs, mpstat.JSON_FILE)
            return _readings(side, fio.throughput(text, side, runtime_s), mpstat.load(watched))

        # fio stays in the foreground, so that Ctrl-C reaches it.
        command = f"(sleep {settle_s}; {watch}) & {command}; r=$?; wait; exit $r"
        return Measure(side, command, runtime_s * 2 + 120, runtime_s + 2, parse=parse)

    fill = fio.fill_command(target=target, size=size, name=job)
    return [measure("write"), Prepare("fill", fill, 60 + size_bytes(size) / 100_000, 3), measure("read")]
