"""The few figures of a run that a person wants to see first: boot, storage, memory, processor, network, each
with its change to TI's figure and to earlier runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evmperf.benchmarks import catalogue, wording
from evmperf.guides.published import steady
from evmperf.model import comparable
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Direction, Result
from evmperf.model.run import Run
from evmperf.model.stats import brief
from evmperf.model.units import readable
from evmperf.model.verdict import Outcome

AREAS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Boot",
        (
            "boot_time*/default_rootfs/boot_time",
            "boot_time*/*/boot_time",
            "last_boot/*/boot_time",
            "last_boot/*/kernel",
        ),
    ),
    (
        "Storage read",
        ("*_raw_fio*/1m/read_*put", "*fio*/*/read_*put", "disk_reads/*/sequential", "*/*/read_throughput"),
    ),
    ("Storage write", ("*_raw_fio*/1m/write_*put", "*fio*/*/write_*put", "*/*/write_throughput")),
    ("Memory", ("stream/copy/perf", "memory_bandwidth/all/copy", "lmbench/bw_mem-cp-16mb/perf")),
    (
        "Processor",
        ("coremarkpro/coremark-pro/perf", "dhrystone/dhrystone_per_second/perf", "processor/all/integer"),
    ),
    ("Crypto", ("openssl_throughput/aes-128-cbc|16384/*", "openssl_throughput/*/throughput")),
    ("Network", ("*tcp*/*/throughput*", "*netperf*/*/*bandwidth*", "*iperf*/*/*")),
    ("Temperature", ("under_load/*/temperature_peak",)),
)
"""Areas, each with the figures that stand for it, the best known first: BENCHMARK/CASE/METRIC."""


@dataclass(frozen=True)
class ShownChange:
    """What a figure is held against (`TI 11.02: 45.1 MB/s`), the change in words, and its tone on a page, ""
    for one that is within the metric's own scatter, or where that is not known.
    """

    against: str
    words: str
    tone: str = ""


@dataclass(frozen=True)
class Headline:
    """One area: its figure with unit, what that is, and its changes."""

    area: str
    figure: str
    name: str
    key: Key
    changes: tuple[ShownChange, ...]


def headlines(
    run: Run,
    results: Iterable[Result],
    published: Baseline | None,
    verdicts: Mapping[Key, VerdictRecord] | None = None,
) -> list[Headline]:
    """The areas that the run has a figure of."""
    known = figures(results)
    found = []
    for area, patterns in AREAS:
        keys = (key for pattern in patterns for key in known if fnmatchcase("/".join(key), pattern))
        if key := next(keys, None):
            figure = known[key]
            both = (beside(run, figure, published), earlier((verdicts or {}).get(key)))
            changes = tuple(change for change in both if change)
            found.append(Headline(area, in_words(figure), wording.figure(key), key, changes))
    return found


def in_words(figure: Figure) -> str:
    """Its mean with the unit."""
    unit, divisor = readable(figure.unit, figure.mean)
    return f"{brief(figure.mean / divisor)} {unit}"


def beside(run: Run, figure: Figure, published: Baseline | None) -> ShownChange | None:
    """A figure beside TI's, without a change where both were not measured alike; None without TI's."""
    theirs = published.figures.get(figure.key) if published else None
    if not published or theirs is None or theirs.unit != figure.unit:
        return None
    against = f"TI {published.published.release}: {in_words(theirs)}"
    ours = comparable.of_result(run, figure.result)
    if not theirs.mean or comparable.difference(
        ours, comparable.of_result(published.published, theirs.result)
    ):
        return ShownChange(against, "measured differently")
    change = figure.mean / theirs.mean - 1
    scatter = steady.scatter(run.board, run.os, figure.key.benchmark, figure.key.metric)
    return ShownChange(against, *_judged(figure, change, scatter))


def _judged(figure: Figure, change: float, scatter: float | None) -> tuple[str, str]:
    """A change in words, and its tone."""
    words = f"{abs(change) * 100:.1f} % {'higher' if change > 0 else 'lower'}"
    better = better_way(figure)
    if scatter is None or better is Direction.NONE:
        return words, ""
    if abs(change) <= scatter:
        return f"{words}, within the scatter of releases", ""
    good = (change > 0) == (better is Direction.HIGHER)
    return f"{words}, {'better' if good else 'worse'}", "good" if good else "bad"


def better_way(figure: Figure) -> Direction:
    """Which way of a figure is better; none for an unknown metric."""
    rows = catalogue.metrics(figure.key.benchmark, figure.result.profile, figure.key.case)
    return next((metric.better for metric in rows if metric.name == figure.key.metric), Direction.NONE)


def earlier(verdict: VerdictRecord | None) -> ShownChange | None:
    """What comparing with earlier runs said of a figure; None where nothing was compared."""
    if verdict is None:
        return None
    change = "" if verdict.change is None else f" by {abs(verdict.change) * 100:.1f} %"
    tone = {Outcome.WORSE: "bad", Outcome.BETTER: "good"}.get(Outcome(verdict.verdict), "")
    return ShownChange("earlier runs", f"{verdict.verdict}{change if tone else ''}", tone)
