"""Boards' nights over a year, made up: noise, releases, changes for better and worse."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
from msgspec.structs import replace

from evmperf.benchmarks import catalogue
from evmperf.measure.runs import spool
from evmperf.model.facts import Facts
from evmperf.model.results import Sample
from evmperf.model.run import Run
from evmperf.model.units import Unit
from selftests.support import spools

BEGAN = datetime(2025, 11, 22, 1, tzinfo=UTC)
_RELEASES = ("11.00", "11.01", "11.02", "12.00")
_SPREAD = 0.01
_SAMPLES = 3


def figures(benchmarks):
    """The cases of some benchmarks with their metrics."""
    return [
        (name, case, catalogue.benchmark(name).metrics_of(case))
        for name in benchmarks
        for case in catalogue.benchmark(name).cases("full")
    ]


def write(results, boards, nights, benchmarks, *, changed=0.02, systems=("Linux",)):
    """Write the runs of boards, one of each system a night; a share `changed` of the metrics comes to another
    level once. Returns the bytes of their records.
    """
    wanted = figures(benchmarks)
    written = 0
    for number, (board, hour) in enumerate(itertools.product(boards, range(len(systems)))):
        generator = np.random.default_rng(number)
        levels = {}
        for name, case, metrics in wanted:
            for metric in metrics:
                scale = {Unit.PERCENT: 1.0, Unit.SECOND: 0.1}.get(metric.unit, 20.0)
                level = scale * (1 + 49 * generator.random())
                at = int(generator.integers(20, max(21, nights - 12)))
                moves = generator.random() < changed
                factor = float(generator.choice([0.8, 0.9, 1.1])) if moves else 1.0
                levels[name, case.label, metric.name] = (level, at, factor)
        for night in range(nights):
            release = _RELEASES[night * len(_RELEASES) // nights]
            run = _run(board, BEGAN + timedelta(days=night, hours=hour), release, night, systems[hour])
            found = []
            for name, case, metrics in wanted:
                values = {
                    metric: _values(levels[name, case.label, metric.name], night, generator)
                    for metric in metrics
                }
                found.append(_result(run, name, case, values))
            written += put(results, run, found)
    return written


def put(results, run, found):
    """Write a run with a report, all at once; returns the bytes of its records."""
    folder = results / run.id
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    (folder / "report.html").write_text(f"<title>{run.id}</title>")
    return (folder / spool.RECORDS).write_bytes(b"".join(map(spool.line, found)))


def scale(folder, factor):
    """Multiply each sample of a run on the disk by what `factor` says of it."""
    found = []
    for result in spool.read_results(folder):
        samples = (replace(s, value=s.value * factor(result, s)) for s in result.samples)
        found.append(replace(result, samples=tuple(samples)))
    (folder / spool.RECORDS).write_bytes(b"".join(map(spool.line, found)))


def _run(board, start, release, night, system):
    began_ns = int(start.timestamp()) * 10**9
    return Run(
        f"{board}-{start:%Y%m%dT%H%M%SZ}",
        board,
        "full",
        kind="nightly",
        lab="lab",
        place=board,
        started_ns=began_ns,
        ended_ns=began_ns + 3600 * 10**9,
        release=release,
        os=system,
        exit_status=0,
        outcome="All measured.",
        facts=Facts(kernel=f"6.12.{night // 14}-ti", governor="performance"),
    )


def _values(level, night, generator):
    middle, at, factor = level
    tonight = middle * (factor if night >= at else 1.0) * (1 + _SPREAD * generator.standard_normal())
    return [float(tonight * (1 + n)) for n in generator.standard_normal(_SAMPLES) * _SPREAD / 3]


def _result(run, name, case, found):
    values = tuple(
        Sample(metric.name, value, str(metric.unit), number, run.started_ns + number)
        for metric, several in found.items()
        for number, value in enumerate(several)
    )
    return spools.a_case(
        **spools.row(catalogue.benchmark(name), case),
        samples=values,
        tools={"fio": "fio-3.36"},
        started_ns=run.started_ns,
        raw=(f"raw/{name}/{case.label}/0.json",),
        duration_s=60.0,
        tool_s=59.0,
    )
