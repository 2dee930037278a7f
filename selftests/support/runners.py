"""A benchmark of the selftests for the runner, and what a runner left behind."""

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import Measure
from evmperf.measure.runs.spool import records_in
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Direction, Metric, Reading, Result
from evmperf.model.units import Unit

RATE = Metric("rate", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Rate", low=1.0, high=100.0)
LOAD = Metric("load", Unit.PERCENT, Direction.LOWER, "Load", low=0.0, high=100.0, required=False)
DELAY = Metric("delay", Unit.MICROSECOND, Direction.LOWER, "Delay", low=0.1, high=10.0)
CASE = Case("4k", {"block_size": "4k"})
A, B, C = Case("a"), Case("b"), Case("c")


def parse(outputs, name="x", metric="rate"):
    try:
        return [Reading(metric, float(outputs[name]))]
    except (KeyError, ValueError):
        raise RefusedOutput(f"{name} holds no number", outputs.get(name, "")) from None


def measuring(command, name="write", repetition=0):
    return Measure(name, command, 10, parse=parse, repetition=repetition)


def make(*steps, **changes):
    """A benchmark with these steps."""
    given = {
        "name": "emmc_fake",
        "driver": "emmc",
        "title": "Fake",
        "section": ("Fake",),
        "metrics": (RATE, LOAD),
        "profiles": {"quick": Profile((CASE,))},
        "place": Place.SHELL,
        "steps": lambda board, case, profile: steps,
        "tools": ("dd",),
    }
    return Benchmark(**{**given, **changes})


def make_rows(steps, **changes):
    """A benchmark of three rows whose steps come from a function of the case."""
    rows = {"metrics": (RATE,), "profiles": {"quick": Profile((A, B, C))}, "tools": ()}
    return make(**{**rows, "steps": lambda board, case, profile: steps(case), **changes})


BOOTS = make(
    name="boot_time_fake",
    driver="boot",
    place=Place.BOOT,
    tools=(),
    metrics=catalogue.benchmark("boot_time_mmcsd").metrics,
    profiles={"quick": Profile((CASE,), 5)},
)
FINE = make(measuring('echo 12.5 >"$OUT/x"'))


def on_spool(runner):
    """Each execution apart."""
    records = records_in(runner.spool.folder)
    return [record for record in records if isinstance(record, Result)]


def messages(result):
    return [f"{f.kind}: {f.message}" for f in result.failures]
