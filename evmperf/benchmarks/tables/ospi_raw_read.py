"""Raw read of an MTD partition with dd.

The guides' raw_perf.sh divides by the time of bash's `time -p`, which counts in steps of 10 ms;
here it is dd's own, of six digits. dd is recorded as the tool.
"""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families import flash
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import MEBIBYTE, Unit
from evmperf.tools import dd


def _steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
    device, size = board.options.ospi.device, int(case.params["file_size_mb"]) << 20

    def parse(outputs: Outputs) -> list[Reading]:
        return [Reading("read_throughput", dd.throughput(output(outputs, dd.TEXT_FILE), size, MEBIBYTE))]

    read = f"{flash.find(device, size, 'device')}; {flash.read_command(size)}"
    return [Measure("read", read, 60 + size / 100_000, size / 5e6, parse=parse)]


def _profile(*sizes: int) -> Profile:
    return Profile(tuple(Case(str(size), {"file_size_mb": size}) for size in sizes))


BENCHMARK = Benchmark(
    name="ospi_raw_read",
    driver="ospi",
    title="OSPI Raw Flash Driver",
    section=("OSPI Flash Driver", "{BOARD}", "RAW"),
    metrics=(
        Metric(
            "read_throughput",
            Unit.MEBIBYTE_PER_SECOND,
            Direction.HIGHER,
            "Raw Read Throughput",
            low=0.01,
            high=2_000,
        ),
    ),
    profiles={"full": _profile(50), "quick": _profile(4)},
    place=Place.SHELL,
    steps=_steps,
    tools=("dd",),
    options=(("ospi", "device"),),
    conditions=lambda board: {"device": board.options.ospi.device},
)
