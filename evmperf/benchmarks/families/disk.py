"""Tables of disks and cards under Linux: file systems through TI's program or dd, and fio."""

import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Profile, noted, percentage
from evmperf.benchmarks.families import processor, scratch
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, output, readings
from evmperf.benchmarks.tools import dd, ltp_ddt, mpstat
from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import KIBIBYTE, MEGABYTE, Unit

BUFFER_SIZES = (102400, 262144, 524288, 1048576, 5242880)
"""Bytes; the rows of the file system tables."""

SOURCE = "/dev/shm/evmperf-source"
"""Random data that is written, made on the board before a measurement."""

_LARGE = 256 << 20
"""Bytes above which /dev/shm, half of a board's memory, may be too small."""

_FILE = f"{scratch.MOUNT_POINT}/test_file"

_SHELL = ShellTexts(__file__)

_BLOCK_SIZES = ("1m", "4m", "4k", "256k")
_IN_ORDER = ("4m", "1m", "256k", "4k")
"""The order in which TI runs them (ltp-ddt, blk_device_filesystem_perf_test.sh and its lists of tests)."""
_TI_SOURCE_BYTES = 10 << 20
"""Of the file that TI's program maps and writes over and over."""

_NORMAL = re.compile(r"\s*(?:[^\n]*: \(groupid=\d+, jobs=\d+\): err= *0: |\Z)")
"""Allowed after the JSON: nothing, or the normal output (`--output-format=json,normal`)."""
_ENDED = "terminating on signal"
_SHORTEST = 0.999
"""Minimum part of the requested time that a timed job must run."""
_BINARY = 1e-9
"""Relative rounding error of older versions, which divide in floating point."""


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
    kind: str,
    *,
    driver: str,
    heading: str = "",
    full_bytes: int = 100 << 20,
    quick_bytes: int = 5 << 20,
    buffer_sizes: Sequence[int] = BUFFER_SIZES,
    **guide: object,
) -> Benchmark:
    """A table of a file system: a file written five times and read once, as published, and a smaller one.
    `heading` is how the guide heads its columns; `guide` are name, title and section.

    On boards without TI's filesystem_tests, dd stands in for it, with the same bytes, buffers, fsync inside
    the timed part, and cold cache. As there, only the first of the writes makes the file.
    """
    files = _Files(kind, driver, tuple(buffer_sizes))
    own = _table(
        driver,
        heading or kind.upper(),
        "dd from memory, over the same file",
        profiles=Profile.crossed(
            {"buffer_size": buffer_sizes}, repeats=(5, 1), file_bytes=(full_bytes, quick_bytes)
        ),
        steps=files.by_dd,
        tools=("dd", *scratch.tools(kind)),
        version=2,
        **guide,
    )

    tools = (ltp_ddt.FILES, *scratch.tools(kind))
    return replace(
        own, ti=replace(own, steps=files.by_tis_program, tools=tools, conditions=noted(driver, "scratch"))
    )


@dataclass(frozen=True)
class _Files:
    """The steps of a file system's table."""

    kind: str
    driver: str
    buffer_sizes: tuple[int, ...]

    def by_dd(self, board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        """Writes and one read with dd, each row with a file system of its own."""
        system = scratch.file_system(self.kind, board, self.driver)
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
        mount = f"umount {scratch.MOUNT_POINT} && {system.mount}"
        cold = f"{mount} && echo 3 >/proc/sys/vm/drop_caches && "
        to_file = f"if={SOURCE} of={_FILE} conv=fsync,notrunc"
        return [
            # Making a file system on a slow, large partition takes minutes.
            Prepare("prepare", f"{source} && {{ {system.fresh}; }}", 600, 2),
            *(measure("write", "", to_file, 2 + size / 50e6, number) for number in range(plan.repeats)),
            measure("read", cold, f"if={_FILE} of=/dev/null", 2),
            scratch.clean_up(f" && rm -f {SOURCE}{system.release}"),
        ]

    def by_tis_program(self, board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        """TI's program in TI's order: one execution for all rows, on a file system that is made once."""
        system, size = scratch.file_system(self.kind, board, self.driver), int(case.params["file_bytes"])
        source_bytes, buffer = math.gcd(size, _TI_SOURCE_BYTES), int(case.params["buffer_size"])
        text = _SHELL(
            "files",
            prepare=f"{{ {system.fresh}; }}",
            mount=system.mount,
            mount_point=scratch.MOUNT_POINT,
            sizes=_words(self.buffer_sizes),
            repeats=_words(range(plan.repeats)),
            source=SOURCE,
            source_bytes=source_bytes,
            file=_FILE,
            write=ltp_ddt.transfer(
                "write", size, file=_FILE, buffer="$b", source=SOURCE, source_bytes=source_bytes
            ),
            read=ltp_ddt.transfer("read", size, file=_FILE, buffer="$b"),
        )
        transfers = len(self.buffer_sizes) * (plan.repeats + 1)
        # The program sleeps 3 s.
        times_s = (600 + transfers * (60 + size / 100_000), transfers * (3 + size / 50e6))
        shared = f"{ltp_ddt.FILES} {self.kind} {size}"

        def measure(side: str, repetition: int = 0) -> Measure:
            name = f"write{repetition}" if side == "write" else side

            def parse(outputs: Outputs) -> list[Reading]:
                printed = output(outputs, f"{buffer}.{name}.txt")
                figures = ltp_ddt.transferred(printed, side, size, buffer, source_bytes)
                return _readings(side, *figures)

            return Measure(name, text, *times_s, parse=parse, repetition=repetition, shared=shared)

        writes = [measure("write", number) for number in range(plan.repeats)]
        return [*writes, measure("read"), scratch.clean_up(f" && rm -f {SOURCE}{system.release}")]


def _words(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


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

    As TI runs it, all rows are one execution: the smaller blocks write over, and read, what the larger wrote.
    """
    place = "partition" if kind == "raw" else "file"

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        if kind == "raw":
            partition = board.text(driver, "scratch")
            guard = scratch.guard(partition, driver, whole_disk=scratch.is_whole_disk(board, driver))
            return _fio_steps(driver, guard, f"--filename={shlex.quote(partition)}", case)
        fresh = scratch.file_system(kind, board, driver).fresh
        on_files = _fio_steps(driver, fresh, f"--directory={scratch.MOUNT_POINT}", case)
        return [*on_files, scratch.clean_up()]

    sizes: Any = {"size": (size, "16m"), "runtime_s": (60, 3), "settle_s": (5, 1)}
    return _table(
        driver,
        "Raw" if kind == "raw" else kind.upper(),
        f"{', '.join(_IN_ORDER)} over one {place}",
        profiles=Profile.crossed({"block_size": _BLOCK_SIZES}, **sizes),
        steps=steps,
        tools=("fio", "mpstat"),
        version=2,
        **guide,
    )


def _fio_steps(driver: str, prepare: str, target: str, case: Case) -> list[Step]:
    runtime_s, settle_s = int(case.params["runtime_s"]), int(case.params["settle_s"])
    size, block_size = str(case.params["size"]), str(case.params["block_size"])
    text = _SHELL(
        "fio",
        prepare=f"{{ {prepare}; }}",
        sizes=_words(_IN_ORDER),
        settle_s=settle_s,
        watch=mpstat.command(runtime_s - settle_s, "$b.$rw.mpstat.json"),
        # LTP-DDT's job. It stays in the foreground, so that Ctrl-C reaches it.
        fio=(
            f"fio --name={driver}_TEST {target} --size={size} --rw=$rw --blocksize=$b "
            f"--ioengine=libaio --iodepth=4 --numjobs=1 --direct=1 --group_reporting "
            f"--runtime={runtime_s} --time_based --eta=never "
            f'--output-format=json --output="$OUT/$b.$rw.json"'
        ),
    )
    jobs = 2 * len(_BLOCK_SIZES)

    def measure(side: str) -> Measure:
        def parse(outputs: Outputs) -> list[Reading]:
            document = output(outputs, f"{block_size}.{side}.json")
            watched = output(outputs, f"{block_size}.{side}.mpstat.json")
            return _readings(side, fio_throughput(document, side, runtime_s), mpstat.load(watched))

        times_s = (600 + jobs * (runtime_s * 2 + 120), 2 + jobs * (runtime_s + 2))
        return Measure(side, text, *times_s, parse=parse, shared=f"fio {target} {size} {runtime_s}")

    return [measure("write"), measure("read")]


def fio_throughput(text: str, direction: str, seconds: int | None = None) -> float:
    """Mean throughput of one job of fio 3 in MB/s (10^6 bytes); `direction` is `read` or `write`, `seconds`
    how long a timed job must have run. Raises RefusedOutput for anything but a finished job without errors
    that moved data, and unless fio's rates in bytes and KiB, bytes and milliseconds agree.
    """
    job = _job(text)
    refuse(job.get("error") != 0, f"fio reports error {job.get('error')}", text)
    other = "read" if direction == "write" else "write"
    with refusing(f"fio's output has no {direction} side", text):
        side, idle = job[direction], job[other]
        moved, rate, moved_other = side["io_bytes"], side["bw_bytes"], idle["io_bytes"]
        again = side["io_kbytes"], side["bw"], side["runtime"]
    integers = all(type(number) is int for number in (moved, rate, moved_other, *again))
    refuse(not integers, "fio's byte counts are not whole numbers", text)
    refuse(moved_other, f"fio was asked to {direction} but did {other}", text)
    refuse(moved <= 0 or rate <= 0, f"fio's {direction} job moved no data", text)
    moved_kib, rate_kib, runtime_ms = again
    same = (moved // KIBIBYTE, rate // KIBIBYTE) == (moved_kib, rate_kib)
    refuse(not same, "fio's bytes and KiB contradict each other", text)
    early = seconds is not None and runtime_ms < 1000 * seconds * _SHORTEST
    refuse(early, f"fio ended after {runtime_ms} ms instead of {seconds} s", text)
    off = abs(rate * runtime_ms - 1000 * moved) > runtime_ms * (1 + rate * _BINARY)
    refuse(off, f"fio's rate does not match {moved} bytes in {runtime_ms} ms", text)
    return float(rate) / MEGABYTE


def _job(text: str) -> dict[str, Any]:
    refuse(_ENDED in text, "fio was ended by a signal", text)
    # fio may print notes before the object.
    start = text.find("{")
    refuse(start < 0, "fio's output holds no JSON", text)
    try:
        document, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError as error:
        raise RefusedOutput(f"fio's output is not whole JSON: {error}", text) from None
    refuse(not _NORMAL.match(text, end), "fio's output continues after its JSON", text)
    with refusing("fio's output does not hold exactly one job", text):
        (job,) = document["jobs"]
        return dict(job.items())
