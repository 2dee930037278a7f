"""Control metrics, measured once a session and in no guide: when they change, the board or the lab did."""

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.tools import control
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit

NAME = "control"
LOOP = Metric("cpu_loop", Unit.MILLISECOND, Direction.LOWER, "CPU loop", 1, 60_000, required=False)
STEP = Metric("fixed_step", Unit.SECOND, Direction.LOWER, "Fixed step", 0, 600, required=False)
"""The lab's clock around the step that runs the loops: console, network and host are in it."""
IDLE = Metric("idle_temperature", Unit.CELSIUS, Direction.NONE, "Idle temperature", -60, 200, required=False)
CASE = Case("session", {})
BENCHMARK = Benchmark(
    NAME,
    NAME,
    "Control",
    ("Control",),
    (LOOP, STEP, IDLE),
    dict.fromkeys(("full", "quick"), Profile((CASE,), control.RUNS)),
)
