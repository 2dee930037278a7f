"""Results as a table for people: one row a metric of a case."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evmperf.benchmarks import catalogue, wording
from evmperf.measure.state import buses
from evmperf.model import anytime, comparable
from evmperf.model.figures import Baseline, Key
from evmperf.model.results import MARKS, REPEAT, Published, Result, Status
from evmperf.model.stats import Summary, outliers_text, percent, rounded, summarise
from evmperf.publish.report.columns import Column, table


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


def baseline_cells(baseline: Baseline, result: Result, row: Row) -> tuple[str, str]:
    """Baseline and change of one row, "" without one, or where `evmperf check` would not compare."""
    known = baseline.figures.get(Key(row.benchmark, row.case, row.metric))
    values = result.values(row.metric)
    if known is None:
        return "", ""
    ours = comparable.of_result(baseline.run, result)
    theirs = comparable.of_result(baseline.published, known.result)
    alike = known.unit == row.unit and not comparable.difference(ours, theirs)
    if not (values and known.mean and alike):
        return rounded(known.mean), ""
    change = summarise(values).mean / known.mean - 1
    return rounded(known.mean), percent(change)


def text_table(results: Iterable[Result], width: int | None = None, baseline: Baseline | None = None) -> str:
    """All results as a table for the terminal, `width` characters wide (None: the terminal's)."""
    compared = (
        (Column(baseline.published.release, right=True, drop=4), Column("change", right=True, drop=1))
        if baseline
        else ()
    )
    columns = (
        Column("benchmark", wrap=True),
        # Some rows of the guides are named by a whole command line.
        Column("case", most=24),
        Column("metric"),
        Column("mean", right=True),
        Column("unit"),
        Column("min", right=True, drop=3),
        Column("max", right=True, drop=3),
        Column("n", right=True, drop=2),
        *compared,
        Column("note", wrap=True),
    )
    before, rows = ("", ""), []
    for result, row in ((one, row) for one in results for row in result_rows(one)):
        key = (row.benchmark, row.case)
        shown = ("", "") if key == before else (row.benchmark, shortened(row.case))
        before = key
        cells = baseline_cells(baseline, result, row) if baseline else ()
        figures = (row.metric, row.mean, row.unit, row.low, row.high, str(row.count))
        rows.append((*shown, *figures, *cells, row.note))
    return table(columns, rows, width)


MOST = 60
"""Rows that are shown."""


class Beside(NamedTuple):
    """One figure beside the published one, their change ("": not comparable), and earlier releases."""

    name: str
    ours: str
    unit: str
    published: str
    change: str
    history: str


def beside(nearest: Baseline, every: Sequence[Baseline], result: Result, row: Row) -> Beside | None:
    """A row beside the nearest release's figure; None where that has none."""
    theirs, change = baseline_cells(nearest, result, row)
    if not theirs:
        return None
    key = Key(row.benchmark, row.case, row.metric)
    known = [(one.published.release, one.figures[key]) for one in every if key in one.figures]
    history = ", ".join(f"{release}: {rounded(f.mean)}" for release, f in known if f.unit == row.unit)
    return Beside(wording.figure(key), row.mean, row.unit, theirs, change, history)
