"""The figures of a run, from its samples or from the cells of a published guide."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evmperf.model.results import Result, Status
from evmperf.model.run import Run
from evmperf.model.stats import summarise


class Key(NamedTuple):
    """What is measured: one metric of one row of one table."""

    benchmark: str
    case: str
    metric: str

    def __str__(self) -> str:
        return f"{self.benchmark} {self.case} {self.metric}"


@dataclass(frozen=True)
class Figure:
    """One figure, in `unit`. The mean is the number of a figure: guides print it, and
    verdicts judge it. A published figure has the count 0, and no bounds (None) where none were printed.
    """

    key: Key
    unit: str
    mean: float
    low: float | None
    high: float | None
    spread: float | None
    """Standard deviation of the samples; None for fewer than two."""
    count: int
    outliers: int
    text: str
    """The printed cell of a guide, if it does not follow from the numbers."""
    result: Result

    @property
    def published(self) -> bool:
        """Whether a guide is where it comes from."""
        return self.count == 0

    @property
    def doubt(self) -> str:
        """Why a published figure is not judged; "" for nothing."""
        return next((cell.doubt for cell in self.result.published if cell.metric == self.key.metric), "")

    @property
    def conditions(self) -> Mapping[str, object]:
        """Its conditions beyond the run's facts."""
        return self.result.conditions

    @property
    def error(self) -> float | None:
        """The maximum error of a sample in `unit`; None if it was not measured."""
        return self.result.error(self.key.metric)

    @property
    def flaw(self) -> str:
        """What was wrong with its measurement; "" for nothing."""
        if self.result.status is Status.MEASURED:
            return ""
        flaws = ", ".join(self.result.flaws()) or "samples are missing"
        return f"{self.result.status}: {flaws}"


def figures(results: Iterable[Result]) -> dict[Key, Figure]:
    """Every figure of some results; the later one of a case that was measured twice."""
    by_key: dict[Key, Figure] = {}
    for result in results:
        for metric, unit in {sample.metric: sample.unit for sample in result.samples}.items():
            values = result.values(metric)
            of, key = summarise(values), Key(result.benchmark, result.case, metric)
            bounds = of.low, of.high, statistics.stdev(values) if len(values) > 1 else None
            by_key[key] = Figure(key, unit, of.mean, *bounds, of.count, of.outliers, "", result)
        for cell in result.published:
            key, ends = Key(result.benchmark, result.case, cell.metric), (cell.low, cell.high, None)
            by_key[key] = Figure(key, cell.unit, cell.mean, *ends, 0, 0, cell.text, result)
    return by_key


@dataclass(frozen=True)
class Baseline:
    """The figures of a `published` run for the board of a `run`."""

    run: Run
    published: Run
    figures: Mapping[Key, Figure]
