"""File system tables: buffered writes with a final fsync, and cold reads, through dd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families.storage import scratch
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Reading
from evmperf.tools import dd, mpstat

BUFFER_SIZES = (102400, 262144, 524288, 1048576, 5242880)
"""Bytes; the rows of the file system tables."""

SOURCE = "/dev/shm/evmperf-source"
"""Random data that is written, made on the board before a measurement."""

_LARGE = 256 << 20
"""Bytes above which /dev/shm, half of a board's memory, may be too small."""

_VARIANT = "dd from memory, over the same file"

_FILE = f"{scratch.MOUNT_POINT}/test_file"


def file_system_benchmark(
    *,
    name: str,
    driver: str,
    title: str,
    section: tuple[str, ...],
    file_system: str | scratch.FileSystem,
    heading: str = "",
    profiles: Mapping[str, Profile] | None = None,
) -> Benchmark:
    """A file system table; `heading` is how the guide heads its columns where that is not the file
    system's name.

    `file_system` is one for block devices by its name, or any other. dd stands in for LTP-DDT's
    filesystem_tests, with the same bytes, buffers, fsync inside the timed part, and cold cache; it
    is recorded as the tool, so the two are never compared. As there, only the first of the writes
    makes the file: the others write over it, without truncating.
    """
    kind = scratch.on_block_device(file_system, driver) if isinstance(file_system, str) else file_system

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        partition = board.text(driver, "scratch")
        size, buffer = int(case.params["file_bytes"]), int(case.params["buffer_size"])
        slow = 60 + size / 100_000  # 0.1 MB/s and worse counts as hung
        to_file = f"if={SOURCE} of={_FILE} conv=fsync,notrunc"
        write = f"sync; {_timed_dd(to_file, buffer)}"
        read = (
            f"sync; umount {scratch.MOUNT_POINT} && {kind.mount(partition)} && "
            f"echo 3 >/proc/sys/vm/drop_caches && " + _timed_dd(f"if={_FILE} of=/dev/null", buffer)
        )
        source = f"head -c {size} /dev/urandom >{SOURCE}"
        if size > _LARGE:
            source = f"mount -o remount,size={size + _LARGE} /dev/shm && {source}"
        return [
            scratch.prepare(f"{source} && {{ {kind.fresh(partition)}; }}"),
            *(
                Measure(
                    f"write{repetition}",
                    write,
                    slow,
                    2 + size / 50e6,
                    parse=lambda outputs: _dd_readings(outputs, "write", size),
                    repetition=repetition,
                )
                for repetition in range(plan.repeats)
            ),
            Measure("read", read, slow, 2, parse=lambda outputs: _dd_readings(outputs, "read", size)),
            scratch.clean_up(
                f" && rm -f {SOURCE}" + (f" && {kind.release(partition)}" if kind.release else "")
            ),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=scratch.metrics(heading or kind.name.upper()),
        profiles=profiles or file_system_profiles(),
        place=Place.SHELL,
        steps=steps,
        tools=("dd", *kind.tools),
        options=((driver, "scratch"),),
        version=2,
        conditions=lambda board: {**scratch.conditions(driver)(board), VARIANT: _VARIANT},
    )


def file_system_profiles(
    full_bytes: int = 100 << 20, quick_bytes: int = 5 << 20, buffer_sizes: Sequence[int] = BUFFER_SIZES
) -> dict[str, Profile]:
    """A file written five times and read once, as published; a smaller one for a first look."""

    def profile(file_bytes: int, repeats: int) -> Profile:
        cases = tuple(
            Case(str(size), {"buffer_size": size, "file_bytes": file_bytes}) for size in buffer_sizes
        )
        return Profile(cases, repeats)

    return {"full": profile(full_bytes, 5), "quick": profile(quick_bytes, 1)}


def _timed_dd(what: str, buffer: int) -> str:
    return mpstat.around(f'dd {what} bs={buffer} 2>"$OUT/{dd.TEXT_FILE}"')


def _dd_readings(outputs: Outputs, side: str, size: int) -> list[Reading]:
    before, after = output(outputs, mpstat.STAT_BEFORE), output(outputs, mpstat.STAT_AFTER)
    return [
        Reading(f"{side}_throughput", dd.throughput(output(outputs, dd.TEXT_FILE), size)),
        Reading(f"{side}_cpu_load", mpstat.stat_load(before, after)),
    ]
