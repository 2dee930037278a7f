"""How long the kernel takes to suspend and to resume its devices, in one low-power mode."""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import pm_phases


def _steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
    sleep_s = int(case.params["sleep_s"])
    command = board.options.power.deep_sleep_command.replace("{seconds}", str(sleep_s))
    return [
        Measure(
            f"sleep{repetition}",
            pm_phases.command(command),
            sleep_s + 120,
            sleep_s + 2,
            parse=_readings,
            repetition=repetition,
        )
        for repetition in range(plan.repeats)
    ]


def _readings(outputs: Outputs) -> list[Reading]:
    found = pm_phases.parse(output(outputs, pm_phases.TEXT_FILE))
    return [Reading("suspend_latency", found.suspend_ms), Reading("resume_latency", found.resume_ms)]


def _metric(name: str, title: str) -> Metric:
    return Metric(name, Unit.MILLISECOND, Direction.LOWER, title, low=0.001, high=100_000)


_CASES = (Case("Deep Sleep", {"mode": "Deep Sleep", "sleep_s": 10}),)

BENCHMARK = Benchmark(
    name="lpm_resume_latency",
    driver="power",
    title="Resume Latency",
    section=("Low Power Performance", "Resume Latency Performance"),
    metrics=(
        _metric("suspend_latency", "Total Suspend Latency"),
        _metric("resume_latency", "Total Resume Latency"),
    ),
    profiles={"full": Profile(_CASES, repeats=5), "quick": Profile(_CASES, repeats=1)},
    place=Place.SHELL,
    steps=_steps,
    options=(("power", "deep_sleep_command"),),
    conditions=lambda board: {"sleep_command": board.options.power.deep_sleep_command},
)
