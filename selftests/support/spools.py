"""Runs to test sinks with: a recorded one of the virtual EVM, and made-up ones of any shape."""

import math
import shutil
from pathlib import Path

import msgspec

from evmperf.benchmarks import catalogue, control
from evmperf.measure.runs import spool
from evmperf.measure.runs.spool import VERDICTS, Spool, append_records
from evmperf.model.errors import Kind
from evmperf.model.records import BootFailure, BootMark, BootRecord, VerdictRecord
from evmperf.model.results import Failure, Result, Sample, Status
from evmperf.model.run import Run

RECORDED = next((Path(__file__).parents[1] / "data/spool").iterdir())
"""Quick run of boot time and eMMC on the virtual EVM, 27 cases, without its raw files."""

START_NS = 1_790_000_000_000_000_000


def recorded(results):
    """A copy of the recorded run below `results`."""
    return shutil.copytree(RECORDED, results / RECORDED.name)


def a_run(number=0, **changes):
    """A run that has ended, a day after the one before it."""
    start = START_NS + number * 86_400_000_000_000
    values: dict[str, object] = {
        "id": f"made-up-{number:04}",
        "board": "made-up",
        "profile": "quick",
        "lab": "desk-1",
        "release": "11.00",
        "os": "Linux",
        "started_ns": start,
        "ended_ns": start + 10**12,
        "outcome": "All measured.",
    } | changes
    return Run.from_dict(values)


def a_case(**changes):
    """A case of a full run."""
    fields = {
        "benchmark": "emmc_ext4",
        "version": 1,
        "driver": "emmc",
        "case": "1m",
        "params": {},
        "profile": "full",
        "status": Status.MEASURED,
    }
    return Result(**{**fields, **changes})


def a_result(run, number=0, values=(1.5, 2.5), **changes):
    """A case of that run, its samples a second apart."""
    begin = run.started_ns + number * 1_000_000_000
    fields = {
        "case": f"case {number}",
        "params": {"size": 4096},
        "profile": run.profile,
        "samples": tuple(
            Sample("write_throughput", value, "MB/s", repetition, begin + repetition)
            for repetition, value in enumerate(values)
        ),
        "tools": {"dd": "9.7"},
        "started_ns": begin,
        "duration_s": 2.0,
        "tool_s": 1.0,
    }
    return a_case(**{**fields, **changes})


def row(benchmark, case):
    """What a result says of its row of the catalogue."""
    names = {"benchmark": benchmark.name, "version": benchmark.version, "driver": benchmark.driver}
    return names | {"case": case.label, "params": case.params}


def with_a_bad_point(run, number=0):
    """A case of three samples, the second with a name that InfluxDB does not take."""
    good, bad, last = (*a_result(run, number, (1.0, 2.0, 3.0)).samples,)
    bad = msgspec.structs.replace(bad, metric="m" * 70_000)
    return a_result(run, number, samples=(good, bad, last))


def a_refusal(run, number=0):
    """A case whose output was refused."""
    failure = Failure(Kind.TOOL, "no throughput in this", "write", refused=True)
    return a_result(run, number, (), status=Status.REFUSED, failures=(failure, failure))


def write(results, run, cases):
    """Put a run on the disk, as if its session had ended."""
    spool = Spool(results, run)
    for case in cases:
        spool.append(case)
    return spool.folder


def of_catalogue(results, rows=None, **changes):
    """A made-up run of everything there is: each case (or so many of each benchmark), metric and
    repetition, its values in the middle of what is plausible; one boot cycle has failed and one
    output was refused.
    """
    run = a_run(**{"id": "everything-full", "profile": "full", "exit_status": 1} | changes)
    spool = Spool(results, run)
    number = 0
    for benchmark in catalogue.benchmarks().values():
        for case in benchmark.cases("full")[:rows]:
            began_ns = run.started_ns + number * 10**9
            samples = tuple(
                Sample(metric.name, _plausible(metric, n), str(metric.unit), n, began_ns + n)
                for metric in benchmark.metrics_of(case)
                for n in range(benchmark.profiles["full"].repeats)
            )
            spool.append(a_result(run, number, **row(benchmark, case), samples=samples))
            number += 1
    spool.append(a_refusal(run, number))
    spool.append(FAILED_BOOT)
    return spool.folder


def cases_of(folder):
    """The results of a run without its control metrics, which no test asks for."""
    return [result for result in spool.read_results(folder) if result.benchmark != control.NAME]


GOAL = {"goal": "at least 55 MB/s", "reached": "missed", "owner": "storage"}


def judge(folder, verdict, reason="", change=None, **goal):
    """Add a verdict on eMMC's largest write to a run."""
    record = VerdictRecord(
        benchmark="emmc_ext4",
        driver="emmc",
        case="102400",
        metric="write_throughput",
        verdict=verdict,
        reason=reason,
        baseline="last:20",
        change=change,
        **goal,
    )
    append_records(folder, [record], VERDICTS)


def _plausible(metric, repetition):
    low = metric.low if math.isfinite(metric.low) else 0.0
    high = metric.high if math.isfinite(metric.high) else low + 1000
    return round(low + (high - low) * (0.3 + 0.01 * (repetition % 7)), 3)


FAILED_BOOT = BootRecord(
    goal="booted",
    started_ns=START_NS,
    duration_s=60.0,
    marks=(BootMark("power_on", 1, START_NS + 1, 0.002),),
    failure=BootFailure(Kind.BOARD, "kernel panic", "power_on"),
    post_mortem="Kernel panic - not syncing: <made up>",
)
