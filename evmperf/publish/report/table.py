"""Results as a table for people: one row a metric of a case."""

from collections.abc import Iterator
from dataclasses import dataclass

from evmperf.benchmarks import catalogue
from evmperf.measure.state import buses
from evmperf.model import anytime
from evmperf.model.results import MARKS, REPEAT, Published, Result, Status
from evmperf.model.stats import Summary, outliers_text, rounded, summarise


@dataclass(frozen=True)
class Row:
    """One figure: mean, min and max as text in `unit`, over `count` samples."""

    benchmark: str
    case: str
    metric: str
    mean: str
    unit: str
    low: str
    high: str
    count: int
    note: str
    required: bool


def result_rows(result: Result) -> Iterator[Row]:
    """The rows of one result; a metric without samples gets a row that says so."""
    metrics = {
        metric.name: metric for metric in catalogue.metrics(result.benchmark, result.profile, result.case)
    }
    there = {s.metric for s in result.samples} | {cell.metric for cell in result.published}
    for name in [*metrics, *sorted(there - set(metrics))]:
        metric = metrics.get(name)
        values = result.values(name)
        required = metric is None or metric.required
        if values:
            unit = metric.unit if metric else next(s.unit for s in result.samples if s.metric == name)
            yield _row(result, name, summarise(values), str(unit), required)
        elif cell := next((c for c in result.published if c.metric == name), None):
            yield _published_row(result, cell, required)
        elif required:
            note = str(result.status) if result.status is not Status.PARTIAL else "missing"
            unit = str(metric.unit) if metric else ""
            yield Row(result.benchmark, result.case, name, "-", unit, "-", "-", 0, note, required)


def _row(result: Result, name: str, summary: Summary, unit: str, required: bool) -> Row:
    notes = []
    if summary.outliers:
        notes.append(outliers_text(summary.outliers))
    if REPEAT in result.conditions and (known := anytime.half_width(result.values(name))):
        notes.append(f"±{known:.1%}")
    if mark := result.conditions.get(MARKS):
        notes.append(str(mark))
    if (error := result.error(name)) is not None:
        notes.append(f"each ± {error:.2g} {unit}")
    if result.state and name in result.state.shares:
        notes.append(f"{result.state.shares[name]:.0%} of {result.state.bus}")
    notes += result.flaws()
    figures = (rounded(summary.mean), unit, rounded(summary.low), rounded(summary.high), summary.count)
    return Row(result.benchmark, result.case, name, *figures, ", ".join(notes), required)


def _published_row(result: Result, cell: Published, required: bool) -> Row:
    """A figure of an imported guide, whose count is not known."""
    low, high = ("-" if bound is None else rounded(bound) for bound in (cell.low, cell.high))
    mean, note = rounded(cell.mean), "published"
    row = (result.benchmark, result.case, cell.metric)
    if share := buses.share_in_words(*row, unit=cell.unit, mean=cell.mean):
        note += f", {share}"
    return Row(*row, mean, cell.unit, low, high, 0, note, required)


_CASE_WIDTH = 36


def shortened(case: str) -> str:
    """A case's label for a table: some are whole command lines."""
    return case if len(case) <= _CASE_WIDTH else f"{case[: _CASE_WIDTH - 1]}…"
