"""A case while it is measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.energy import PowerWindow
from evmperf.benchmarks.step import Plan, Trial
from evmperf.boards.board import Board
from evmperf.measure.state.finding import Finding
from evmperf.model import anytime
from evmperf.model.errors import Kind
from evmperf.model.repeats import Repeats
from evmperf.model.results import (
    MARKS,
    REPEAT,
    VARIANT,
    Case,
    Direction,
    Failure,
    Reading,
    Result,
    Sample,
    Status,
)
from evmperf.model.state import State
from evmperf.model.units import counted


@dataclass
class StepProgress:
    """A case in flight, and its samples and failures so far."""

    benchmark: Benchmark
    case: Case
    plan: Plan
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    tool_s: float = 0.0
    worked: tuple[int, int] | None = None
    """When the last command worked: begin and end in ns since the epoch."""
    windows: list[PowerWindow] = field(default_factory=list)
    rounds: int = 0
    """Number of completed rounds."""
    execution: int = 0
    """How often this session measured the case before: it may be asked to, as by pytest-repeat."""
    performed: int = 0
    """Commands that ran for this case; those that ran for another are not among them."""
    state: State | None = None
    shared: list[list[Finding]] = field(default_factory=list)
    """Of each execution: what was found around it, for all rows that share it."""

    def take(self, way: Benchmark, board: Board) -> None:
        """Measure it in this way, before anything was."""
        self.benchmark, self.conditions = way, dict(way.conditions(board))

    def check(self, readings: Sequence[Reading], raw: str = "") -> None:
        """Raise RefusedOutput unless every reading is declared and plausible."""
        for reading in readings:
            self.benchmark.metric(reading.metric, self.case).check(reading.value, raw)

    def add(self, readings: Sequence[Reading], repetition: int, time_ns: int) -> None:
        """Add readings as samples of that time."""
        for reading in readings:
            unit = str(self.benchmark.metric(reading.metric, self.case).unit)
            number = self.rounds * self.plan.repeats + repetition
            self.samples.append(Sample(reading.metric, reading.value, unit, number, time_ns, reading.error))
            self.note(VARIANT, reading.variant)
            self.note(MARKS, reading.mark)

    def add_window(self, worked: tuple[int, int] | None, repetition: int, *, shared: bool = False) -> None:
        """Add when a tool worked, if that is known."""
        if worked:
            number = self.rounds * self.plan.repeats + repetition
            self.windows.append(PowerWindow(number, *worked, shared))

    def note(self, condition: str, words: str) -> None:
        """Add words to a condition, once."""
        parts = [word for word in str(self.conditions.get(condition, "")).split("; ") if word]
        if words and words not in parts:
            self.conditions[condition] = "; ".join([*parts, words])

    def add_trial(self, trial: Trial, readings: Sequence[Reading]) -> None:
        """Record a search's trials as a condition of its result."""
        values = {reading.metric: reading.value for reading in readings}
        self.conditions.setdefault("trials", []).append({"step": trial.name, **values})

    def judge(self, findings: Sequence[Finding]) -> bool:
        """Whether the samples stand, which are marked or dropped; the raw outputs stay."""
        refused = [
            Failure(Kind.BOARD, finding.reason, "state", refused=True)
            for finding in findings
            if finding.refuses
        ]
        self.failures += refused
        if refused:
            self.samples.clear()
            self.windows.clear()
        for finding in findings:
            if not finding.refuses:
                self.note(MARKS, finding.reason)
        return not refused

    def values(self, metric: str) -> list[float]:
        """The values of one metric so far."""
        return [sample.value for sample in self.samples if sample.metric == metric]

    def enough(self, repeats: Repeats, spent_s: float) -> bool:
        """Whether it has been repeated often enough; notes the reason in its conditions."""
        rounds = counted(self.rounds, "round")
        if repeats.within is None:
            if repeats.rounds > 1:
                self.conditions[REPEAT] = rounds
            return self.rounds >= repeats.rounds
        # Half widths of confidence intervals that allow a check after each round; None for too few values.
        metrics = (m for m in self.benchmark.metrics_of(self.case) if m.better is not Direction.NONE)
        widths = [anytime.half_width(v) for m in metrics if any(v := self.values(m.name))]
        is_narrow = all(width is not None and width <= repeats.within for width in widths)
        if not is_narrow and spent_s * (1 + 1 / self.rounds) < repeats.budget_s:
            return False
        why = "" if is_narrow else f", not within {repeats.within:.1%} in {repeats.budget_s:g} s"
        self.conditions[REPEAT] = f"{rounds}{why}"
        return True

    def file_name(self, name: str) -> str:
        """The path for a raw file of this case and round; no other one's is overwritten."""
        times = (("execution", self.execution), ("round", self.rounds))
        folders = [f"{what}-{number + 1}" for what, number in times if number]
        return "/".join((self.benchmark.name, self.case.label, *folders, name))

    def has_failed(self) -> bool:
        """Whether a failure remained after the repetition."""
        return any(not failure.refused for failure in self.failures) or not self.samples

    def status(self) -> Status:
        """The status, from comparing declared and produced metrics both ways."""
        metrics = self.benchmark.metrics_of(self.case)
        have = {sample.metric for sample in self.samples}
        lost = [failure for failure in self.failures if not failure.refused]
        if not self.samples:
            return Status.REFUSED if self.failures and not lost else Status.FAILED
        missing = {metric.name for metric in metrics if metric.required} - have
        repetitions = {s.repetition for s in self.samples if s.metric == metrics[0].name}
        whole = repetitions == set(range(self.plan.repeats * max(self.rounds, 1)))
        return Status.PARTIAL if missing or lost or not whole else Status.MEASURED

    def result(self, profile: str, started_ns: int = 0, duration_s: float = 0.0) -> Result:
        """What is known of it now, as it goes onto the spool."""
        return Result(
            benchmark=self.benchmark.name,
            version=self.benchmark.version,
            driver=self.benchmark.driver,
            case=self.case.label,
            params=self.case.params,
            profile=profile,
            status=self.status(),
            samples=tuple(self.samples),
            failures=tuple(self.failures),
            tools=self.tools,
            conditions=self.conditions,
            raw=tuple(self.raw),
            started_ns=started_ns,
            duration_s=duration_s,
            tool_s=self.tool_s,
            state=self.state,
        )
