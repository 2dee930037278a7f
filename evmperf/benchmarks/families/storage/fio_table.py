"""fio tables: direct, asynchronous writes and reads of four block sizes."""

from __future__ import annotations

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families.storage import scratch
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Reading
from evmperf.model.units import size_bytes
from evmperf.tools import fio, mpstat

BLOCK_SIZES = ("1m", "4m", "4k", "256k")

_VARIANT = "reads what a fill wrote"
"""TI's read follows the timed write, which may not have got through the file."""


def fio_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...], file_system: str | None, size: str = "1g"
) -> Benchmark:
    """A fio table on the driver's scratch partition, on a file system or on the raw partition.

    `size` is that of the file or region as published.
    """

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        partition = board.text(driver, "scratch")
        if file_system is None:
            target = f"--filename={partition}"
            return [scratch.prepare(scratch.guard(partition, driver)), *_fio_steps(driver, target, case)]
        target = f"--directory={scratch.MOUNT_POINT}"
        return [
            scratch.prepare(scratch.on_block_device(file_system, driver).fresh(partition)),
            *_fio_steps(driver, target, case),
            scratch.clean_up(),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=scratch.metrics(file_system.upper() if file_system else "Raw"),
        profiles={"full": _profile(size, 60, 5), "quick": _profile("16m", 3, 1)},
        place=Place.SHELL,
        steps=steps,
        tools=("fio", "mpstat"),
        options=((driver, "scratch"),),
        conditions=lambda board: {**scratch.conditions(driver)(board), VARIANT: _VARIANT},
    )


def _profile(size: str, runtime_s: int, settle_s: int) -> Profile:
    return Profile(
        tuple(
            Case(
                block_size,
                {"block_size": block_size, "size": size, "runtime_s": runtime_s, "settle_s": settle_s},
            )
            for block_size in BLOCK_SIZES
        )
    )


def _fio_steps(driver: str, target: str, case: Case) -> list[Step]:
    runtime_s, settle_s = int(case.params["runtime_s"]), int(case.params["settle_s"])
    size, name = str(case.params["size"]), f"{driver}_TEST"
    steps: list[Step] = []
    for side in ("write", "read"):
        if side == "read":
            fill = fio.fill_command(target=target, size=size, name=name)
            steps.append(Prepare("fill", fill, 60 + size_bytes(size) / 100_000, 3))
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
            Measure(
                side,
                # fio stays in the foreground, so that Ctrl-C reaches it.
                f"(sleep {settle_s}; {watch}) & {job}; r=$?; wait; exit $r",
                runtime_s * 2 + 120,
                runtime_s + 2,
                parse=lambda outputs, side=side: _fio_readings(outputs, side, runtime_s),  # type: ignore[misc]
            )
        )
    return steps


def _fio_readings(outputs: Outputs, side: str, runtime_s: int) -> list[Reading]:
    text = output(outputs, fio.JSON_FILE)
    return [
        Reading(f"{side}_throughput", fio.throughput(text, side, runtime_s)),
        Reading(f"{side}_cpu_load", mpstat.load(output(outputs, mpstat.JSON_FILE))),
    ]
