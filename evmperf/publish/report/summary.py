"""The few figures of a run that a person wants to see first: boot, storage, memory, processor, network, each
with its change to TI's figure and to earlier runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evmperf.benchmarks import wording
from evmperf.judge import judge
from evmperf.judge.published import scatter
from evmperf.model import comparable
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Direction, Result
from evmperf.model.stats import brief, percent, share_text
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
    """What a figure is held against (`TI 11.02`), the change in words, its tone on a page, the other figure,
    and the change alone ("": not comparable). A change within the metric's own scatter, or of one whose
    scatter is not known, has no tone.
    """

    against: str
    words: str
    tone: str = ""
    figure: str = ""
    percent: str = ""
    other: float | None = None
    """The other figure in the first one's unit."""

    @property
    def short(self) -> str:
        """The same in a cell of a table, where `figure` is in the column's unit."""
        verdict = {"good": "better", "bad": "worse"}.get(self.tone, "")
        change = f"{self.percent} {verdict}".strip() or self.words
        words = ", ".join(filter(None, (self.figure and f"TI {self.figure}", change)))
        return words.replace(" %", "\N{NO-BREAK SPACE}%")

    def __str__(self) -> str:
        return f"{self.against}: {', '.join(filter(None, (self.figure, self.words)))}"


@dataclass(frozen=True)
class Headline:
    """One area: its figure with unit, what that is, and its changes."""

    area: str
    figure: str
    name: str
    key: Key
    changes: tuple[ShownChange, ...]


def headlines(
    results: Iterable[Result], published: Baseline | None, verdicts: Mapping[Key, VerdictRecord] | None = None
) -> list[Headline]:
    """The areas that the run has a figure of."""
    by_key = figures(results)
    shown = []
    for area, patterns in AREAS:
        keys = (key for pattern in patterns for key in by_key if fnmatchcase("/".join(key), pattern))
        if key := next(keys, None):
            figure = by_key[key]
            both = (beside(figure, published), earlier((verdicts or {}).get(key)))
            changes = tuple(change for change in both if change)
            # Where there is no systemd, nothing tells the rest of a boot.
            what = "Kernel alone" if key.metric == "kernel" else area
            shown.append(Headline(what, in_words(figure), wording.figure(key), key, changes))
    return shown


def in_words(figure: Figure) -> str:
    """Its mean with the unit."""
    unit, divisor = readable(figure.unit, figure.mean)
    return f"{brief(figure.mean / divisor)} {unit}"


def beside(figure: Figure, published: Baseline | None) -> ShownChange | None:
    """A figure beside TI's, without a change where both were not measured alike; None without TI's."""
    theirs = published.figures.get(figure.key) if published else None
    if not published or theirs is None or theirs.unit != figure.unit:
        return None
    against, text = f"TI {published.published.release}", in_words(theirs)
    ours = comparable.of_result(published.run, figure.result)
    differs = comparable.difference(ours, comparable.of_result(published.published, theirs.result))
    if differs or not theirs.mean or not figure.count:
        return ShownChange(against, "measured differently" if figure.count else "", "", text, "", theirs.mean)
    change, run = figure.mean / theirs.mean - 1, published.run
    usual = scatter.between_releases(run.board, run.os, figure.key.benchmark, figure.key.metric)
    words, tone = f"{abs(change) * 100:.1f} % {'higher' if change > 0 else 'lower'}", ""
    better = judge.better(figure.key)
    if usual is not None and better is not Direction.NONE:
        good = (change > 0) == (better is Direction.HIGHER)
        tone = "" if abs(change) <= usual else "good" if good else "bad"
        words += {"": ", within the scatter of releases", "good": ", better", "bad": ", worse"}[tone]
    return ShownChange(against, words, tone, text, percent(change), theirs.mean)


def earlier(verdict: VerdictRecord | None) -> ShownChange | None:
    """What comparing with earlier runs said of a figure; None where nothing was compared."""
    if verdict is None:
        return None
    words, change = verdict.verdict, "" if verdict.change is None else percent(verdict.change)
    if change:
        words += f", {change}{_range(verdict)}"
    tone = {Outcome.WORSE: "bad", Outcome.BETTER: "good"}.get(Outcome(verdict.verdict), "")
    if verdict.why and not tone and verdict.verdict != Outcome.SAME:
        words += f" ({verdict.why})"
    return ShownChange("earlier runs", words, tone, percent=change)


def _range(verdict: VerdictRecord) -> str:
    """The tolerance of a change, as ` ±3.1 %`; "" if a smaller change was decided by several nights."""
    if not verdict.was or verdict.tolerance is None:
        return ""
    share = abs(verdict.tolerance / verdict.was)
    moved = verdict.verdict in (Outcome.WORSE, Outcome.BETTER)
    return "" if moved and share > abs(verdict.change or 0.0) else f" ±{share_text(share)}"
