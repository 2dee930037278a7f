"""Runs on disk as pytest leaves them, without a board."""

import itertools

import numpy as np
from msgspec.structs import replace

from evmperf.benchmarks import catalogue
from evmperf.measure.runs.spool import Spool
from evmperf.model.errors import Kind
from evmperf.model.facts import Facts
from evmperf.model.results import Failure, Sample, Status
from evmperf.model.run import Run
from selftests.support.spools import a_case, row

BENCHMARKS = ("boot_time_mmcsd", "emmc_ext4", "emmc_raw_fio_1g", "uboot_emmc_raw")
LEVEL = 100.0
CV = 0.01
RUN_NUMBERS = itertools.count()


def results(generator, benchmarks=BENCHMARKS, profile="full", changed=None, count=3):
    """Results around 100 of whatever unit; `changed` has factors by (benchmark, case, metric)."""
    changed = changed or {}
    for name in benchmarks:
        benchmark = catalogue.benchmark(name)
        for case in benchmark.cases(profile):
            samples = []
            for metric in benchmark.metrics_of(case):
                factor = changed.get((name, case.label, metric.name), 1.0)
                night = LEVEL * factor * (1 + CV * generator.standard_normal())
                samples += [
                    Sample(metric.name, night * (1 + 0.001 * n), str(metric.unit), n, n + 1)
                    for n in range(count)
                ]
            tools = {"fio": "fio-3.36"}
            yield a_case(**row(benchmark, case), profile=profile, samples=tuple(samples), tools=tools)


def write(folder, found, board="am64xx-hsevm", number=None, **facts):
    """Put results into a run of their own; returns its folder."""
    number = next(RUN_NUMBERS) if number is None else number
    run = Run(
        f"{board}-{number:04}",
        board,
        "full",
        started_ns=1_000_000 * (number + 1),
        release=facts.pop("release", "12.00"),
        os=facts.pop("os", "Linux"),
        facts=Facts.from_dict({"virtual": False, "governor": "performance", **facts}),
    )
    spool = Spool(folder, run)
    spool.append(*(_at(run.started_ns, result) for result in found))
    return spool.folder


def _at(start_ns, result):
    """The same result, measured in a run that began then."""
    samples = (replace(s, time_ns=start_ns + s.time_ns) for s in result.samples)
    return replace(result, started_ns=start_ns, samples=tuple(samples))


def history(folder, nights=20, seed=1, **kwargs):
    """A history of nights without a change; returns the generator for the night after."""
    generator = np.random.default_rng(seed)
    for number in range(nights):
        write(folder, results(generator), number=number, **kwargs)
    return generator


def refused(result):
    """The same result, with one repetition refused."""
    failure = Failure(Kind.TOOL, "output cut", "write", refused=True)
    return replace(result, status=Status.PARTIAL, failures=(failure,))


def scaled(result, factor):
    """The same result, with every sample so many times as large."""
    samples = (replace(sample, value=sample.value * factor) for sample in result.samples)
    return replace(result, samples=tuple(samples))
