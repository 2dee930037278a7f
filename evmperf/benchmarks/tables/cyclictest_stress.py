"""Wake-up latencies of the real-time kernel while stress-ng loads its CPUs.

One run of cyclictest serves the three rows. Its histogram stays as raw output and is drawn in the report.
"""

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import cyclictest

_CPUS = 8
"""As many as the largest EVM has."""
_ROWS = {"min": "Minimum (usec)", "avg": "Average (usec)", "max": "Maximum (usec)"}


def _steps(_: Board, case: Case, __: Plan) -> list[Step]:
    duration, statistic = str(case.params["duration"]), str(case.params["statistic"])
    seconds = int(duration[:-1]) * {"s": 1, "h": 3600}[duration[-1]]
    stress, shared = cyclictest.under_stress(duration), f"cyclictest {duration}"

    def parse(outputs: Outputs) -> list[Reading]:
        by_cpu = cyclictest.by_cpu(output(outputs, cyclictest.JSON_FILE), statistic, seconds)
        return [Reading(f"latency_cpu{cpu}", latency) for cpu, latency in by_cpu.items()]

    return [
        Measure("measure", stress, seconds * 1.1 + 60, seconds + 2, parse=parse, shared=shared),
        CleanUp("clean-up", cyclictest.END_STRESS, 30, 0.5),
    ]


def _profile(duration: str) -> Profile:
    rows = ((label, {"statistic": statistic, "duration": duration}) for statistic, label in _ROWS.items())
    return Profile(tuple(Case(*row) for row in rows))


BENCHMARK = Benchmark(
    name="cyclictest_stress",
    driver="rt",
    title="stress-ng + cyclictest latencies",
    section=("System Benchmarks", "Stress-ng and Cyclic Test"),
    metrics=tuple(
        Metric(f"latency_cpu{cpu}", Unit.MICROSECOND, Direction.LOWER, f"CPU {cpu}", 0.5, 1e6, cpu == 0)
        for cpu in range(_CPUS)
    ),
    profiles={"full": _profile("6h"), "quick": _profile("3s")},
    steps=_steps,
    tools=("cyclictest", "stress-ng"),
)
