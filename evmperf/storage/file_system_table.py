"""File system tables: buffered writes with a final fsync, and cold reads, through dd."""

from __future__ import annotations

from collections.abc import Sequence

from evmperf.benchmark import Benchmark, Outputs, Place, Profile, Step, output
from evmperf.board import Board
from evmperf.model import Case, Reading
from evmperf.storage import scratch
from evmperf.tools import dd, mpstat

BUFFER_SIZES = (102400, 262144, 524288, 1048576, 5242880)
"""Bytes; the rows of the file system tables."""

_SOURCE = "/dev/shm/evmperf-source"
_FILE = f"{scratch.MOUNT_POINT}/test_file"


def file_system_benchmark(
    *,
    name: str,
    driver: str,
    title: str,
    section: tuple[str, ...],
    file_system: str,
    heading: str = "",
) -> Benchmark:
    """A file system table; `heading` is how the guide heads its columns where that is not the file
    system's name.

    dd stands in for LTP-DDT's filesystem_tests, with the same bytes, buffers, fsync inside the
    timed part, and cold cache; it is recorded as the tool, so the two are never compared.
    """

    def steps(board: Board, case: Case, profile: Profile) -> Sequence[Step]:
        partition = board.option(driver, "scratch")
        size, buffer = int(case.params["file_bytes"]), int(case.params["buffer_size"])
        slow = 60 + size / 100_000  # 0.1 MB/s and worse counts as hung
        write = f"rm -f {_FILE}; sync; " + _timed_dd(f"if={_SOURCE} of={_FILE} conv=fsync", buffer)
        read = (
            f"sync; umount {scratch.MOUNT_POINT} && {scratch.mount(partition, file_system)} && "
            f"echo 3 >/proc/sys/vm/drop_caches && " + _timed_dd(f"if={_FILE} of=/dev/null", buffer)
        )
        source = f"head -c {size} /dev/urandom >{_SOURCE}"
        return [
            scratch.prepare(f"{source} && {{ {scratch.fresh(partition, file_system)}; }}"),
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
            scratch.clean_up(f" && rm -f {_SOURCE}"),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=scratch.metrics(heading or file_system.upper()),
        # 100 MiB written five times and read once, as published; 5 MiB once for a first look.
        profiles={"full": _profile(100 << 20, 5), "quick": _profile(5 << 20, 1)},
        place=Place.SHELL,
        steps=steps,
        tools=("dd", scratch.MAKE[file_system].split()[0]),
        options=((driver, "scratch"),),
        conditions=scratch.conditions(driver),
    )


def _profile(file_bytes: int, repeats: int) -> Profile:
    cases = tuple(
        Case(str(size), {"buffer_size": size, "file_bytes": file_bytes}) for size in BUFFER_SIZES
    )
    return Profile(cases, repeats)


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
