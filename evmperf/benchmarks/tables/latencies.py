"""Latencies: wake-ups of the real-time kernel while stress-ng loads its CPUs, and round trips of messages
between Linux and the board's other processors, which run echo firmware.

One run of cyclictest serves its three rows. Its histogram stays as raw output and is drawn in the report.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evmperf.benchmarks.benchmark import Benchmark, Profile, unlisted
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools import cyclictest, rpmsg
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Direction, Metric, Reading, Result
from evmperf.model.units import Unit

_DECLARED = declared(__file__)
_CPUS = 8
"""As many as the largest EVM has."""
_STATISTICS = {"min": "Minimum (usec)", "avg": "Average (usec)", "max": "Maximum (usec)"}


def histograms(results: Iterable[Result], folder: Path) -> Iterator[tuple[str, list[dict[int, int]]]]:
    """Benchmark and counts by latency (microseconds) per CPU of each of the tool's files below a run's
    folder, each once; missing or damaged files are left out.
    """
    files = {
        name: result.benchmark
        for result in results
        for name in result.raw
        if result.samples and name.endswith(cyclictest.JSON_FILE)
    }
    for name, benchmark in files.items():
        try:
            if not (folder / name).resolve().is_relative_to(folder.resolve()):
                continue
            text = (folder / name).read_text(encoding="utf-8")
            yield benchmark, cyclictest.histograms(text)
        except (OSError, ValueError, RefusedOutput):
            continue


def _stress_steps(_: Board, case: Case, __: Plan) -> list[Step]:
    duration, statistic = str(case.params["duration"]), str(case.params["statistic"])
    seconds = int(duration[:-1]) * {"s": 1, "h": 3600}[duration[-1]]
    stress, shared = cyclictest.under_stress(duration), f"cyclictest {duration}"

    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, cyclictest.JSON_FILE)
        by_cpu = zip(cyclictest.cpus(text), cyclictest.latencies(text, statistic, seconds), strict=True)
        return [Reading(f"latency_cpu{cpu}", latency) for cpu, latency in by_cpu]

    return [
        Measure("measure", stress, seconds * 1.1 + 60, seconds + 2, parse=parse, shared=shared),
        CleanUp("clean-up", cyclictest.END_STRESS, 30, 0.5),
    ]


def _stress(duration: str) -> Profile:
    rows = (
        (label, {"statistic": statistic, "duration": duration}) for statistic, label in _STATISTICS.items()
    )
    return Profile(tuple(Case(*row) for row in rows))


_CYCLICTEST = Benchmark(
    **_DECLARED["cyclictest_stress"],
    metrics=tuple(
        Metric(f"latency_cpu{cpu}", Unit.MICROSECOND, Direction.LOWER, f"CPU {cpu}", 0.5, 1e6, cpu == 0)
        for cpu in range(_CPUS)
    ),
    profiles={"full": _stress("6h"), "quick": _stress("3s")},
    steps=_stress_steps,
)


_PROCESSORS = {"R5F0_0": 2, "M4F": 9}
"""Numbers of ti-rpmsg-char (rproc_id.h)."""


def _echo_steps(_: Board, case: Case, __: Plan) -> Sequence[Step]:
    processor = _PROCESSORS[str(case.params["processor"])]
    messages, size = int(case.params["messages"]), int(case.params["bytes"])

    def parse(outputs: Outputs) -> list[Reading]:
        text, histogram = output(outputs, rpmsg.TEXT_FILE), output(outputs, rpmsg.HISTOGRAM_FILE)
        average, longest = rpmsg.latencies(text, histogram, processor, messages)
        return readings(average=average, longest=longest)

    command = rpmsg.command(processor, messages, size)
    return [Measure("measure", command, 60 + messages / 500, messages / 3000, parse=parse)]


_RPMSG = Benchmark(
    **_DECLARED["rpmsg_echo"],
    steps=_echo_steps,
    lacks=lambda board, case: unlisted(board, "ipc", "processors", str(case.params["processor"])),
)

BENCHMARKS = (_CYCLICTEST, _RPMSG)
