"""Tables as the guides print them: a row a case, a column a metric with its unit in the head, each figure
with the published one and the verdict beside it; notes stand once, with letters at their rows.
"""

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evmperf.benchmarks import control, wording
from evmperf.judge.published import declared
from evmperf.model import anytime
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.outlets import line
from evmperf.model.records import VerdictRecord
from evmperf.model.results import MARKS, OTHER_LOAD, REPEAT, Result, Status
from evmperf.model.stats import brief
from evmperf.model.units import counted, readable
from evmperf.model.verdict import Outcome
from evmperf.publish.pages.look import natural
from evmperf.publish.report.columns import Column, table
from evmperf.publish.report.summary import ShownChange, beside, earlier

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_HEAD, _LONGEST = 14, 36
"""Characters of a column's head and of a row's label on a terminal: some are whole command lines."""


@dataclass(frozen=True)
class Cell:
    """One figure: its mean (with its unit, where the head has none), `folded` how many samples make it and
    their range, and what it is held against.
    """

    text: str
    folded: str
    changes: tuple[ShownChange, ...]
    key: Key


@dataclass(frozen=True)
class WideRow:
    """One case: its printed key cells, a cell a column (None: not measured), letters of its notes."""

    labels: tuple[str, ...]
    case: str
    cells: tuple[Cell | None, ...]
    letters: str


@dataclass(frozen=True)
class WideTable:
    """A benchmark's table: heads of the key columns and of the metrics, and notes by letter."""

    benchmark: str
    title: str
    keys: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[WideRow, ...]
    notes: tuple[tuple[str, str], ...]

    @property
    def against(self) -> str:
        """What all figures that have one are held against first: `TI 12.00`; "" for none."""
        cells = (cell for row in self.rows for cell in row.cells if cell and cell.changes)
        return next((change.against for cell in cells for change in cell.changes if change.figure), "")


def wide_tables(
    results: Iterable[Result],
    published: Baseline | None = None,
    verdicts: Mapping[Key, VerdictRecord] | None = None,
) -> list[WideTable]:
    """The tables of a run, in the order of its results; what evmperf measures for itself stands last."""
    by_benchmark: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: result.benchmark == control.NAME):
        by_benchmark.setdefault(result.benchmark, []).append(result)
    return [_table(name, rows, published, verdicts or {}) for name, rows in by_benchmark.items()]


def _table(
    benchmark: str,
    results: Sequence[Result],
    published: Baseline | None,
    verdicts: Mapping[Key, VerdictRecord],
) -> WideTable:
    by_key = figures(results)
    form = declared.tables().get(benchmark)
    order = [metric.name for metric in form.metrics] if form else []
    metrics = {key.metric for key in by_key}
    names = sorted(metrics, key=lambda n: (order.index(n) if n in order else len(order), n))
    scales = {name: _scale([f for key, f in by_key.items() if key.metric == name]) for name in names}
    heads = [head(benchmark, name, unit) for name, (unit, _) in scales.items()]
    notes = Notes()
    rows = []
    for result in sorted(results, key=lambda one: natural(one.case)):
        cells = []
        for name in names:
            figure = by_key.get(Key(benchmark, result.case, name))
            verdict = verdicts.get(figure.key) if figure else None
            cells.append(_cell(figure, scales[name], published, verdict) if figure else None)
        mine = (verdicts.get(Key(benchmark, result.case, name)) for name in names)
        untold = [
            f"{'undecided' if one.verdict == Outcome.UNKNOWN else one.verdict}: {one.why or one.reason}"
            for one in mine
            if one and one.verdict in (Outcome.UNKNOWN, Outcome.NOT_COMPARABLE)
        ]
        noted = dict.fromkeys([*_noted(result), *untold])
        letters = "".join(dict.fromkeys(notes.letter(text, result.case) for text in noted))
        labels = (wording.case(benchmark, result.case).split("|") if form else [result.case]) or [""]
        rows.append(WideRow(tuple(labels), result.case, tuple(cells), letters))
    keys = form.keys if form and all(len(row.labels) == len(form.keys) for row in rows) else ("case",)
    if keys == ("case",):
        rows = [WideRow((", ".join(row.labels),), row.case, row.cells, row.letters) for row in rows]
    title = wording.title(benchmark)
    return WideTable(benchmark, title, keys, tuple(heads), tuple(rows), notes.all(len(rows)))


def head(benchmark: str, metric: str, unit: str) -> str:
    """The head of a metric's column as the guide has it, with the unit."""
    form = declared.tables().get(benchmark)
    titles = {one.name: one.title for one in form.metrics} if form else {}
    return " ".join(filter(None, (titles.get(metric, wording.metric(metric)), unit and f"({unit})")))


def _scale(column: Sequence[Figure]) -> tuple[str, float]:
    """The unit to show a column in, and what divides its figures; "" where each has its own."""
    units = {figure.unit for figure in column}
    if len(units) != 1:
        return "", 1.0
    return readable(units.pop(), max(figure.mean for figure in column))


def _cell(
    figure: Figure, scale: tuple[str, float], published: Baseline | None, verdict: VerdictRecord | None
) -> Cell:
    unit, divisor = scale
    low, high = (None if bound is None else bound / divisor for bound in (figure.low, figure.high))
    own = "" if unit else f" {figure.unit}"
    text = brief(figure.mean / divisor, low, high) + own
    folded = f"n {figure.count}" if figure.count else "published"
    if figure.count > 1 and low is not None and high is not None:
        folded += f", {brief(low, low, high)} to {brief(high, low, high)}"
    if figure.error is not None:
        folded += f", each ± {figure.error:.2g} {figure.unit}"
    before = earlier(verdict)
    if before and verdict and verdict.was is not None:
        folded += f", earlier runs {brief(verdict.was / divisor)}: {before.words}"
    other = beside(figure, published)
    if other and other.other is not None and unit:
        other = replace(other, figure=brief(other.other / divisor))
    return Cell(
        text, folded, (*([other] if other else []), *([before] if before and before.tone else [])), figure.key
    )


def _noted(result: Result) -> list[str]:
    """What is to be noted of a case: how it went, its marks, and the samples that stand apart."""
    notes = [] if result.status is Status.MEASURED else [str(result.status)]
    if mark := result.conditions.get(MARKS):
        notes += str(mark).split("; ")
    measured = figures([result])
    for name in dict.fromkeys(sample.metric for sample in result.samples):
        figure = measured[Key(result.benchmark, result.case, name)]
        if figure.outliers:
            notes.append(counted(figure.outliers, "outlier"))
        if REPEAT in result.conditions and (width := anytime.half_width(result.values(name))):
            notes.append(f"{wording.metric(name)} ±{width:.1%}")
    if result.state:
        shares = (f"{share:.0%} of {result.state.bus}" for share in result.state.shares.values())
        notes += shares
    return [*dict.fromkeys([*notes, *result.flaws()])]


class Notes:
    """Notes of rows: those that differ in numbers alone, and all of other load, have one letter, and the
    largest of them is said.
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, set[str]]] = {}

    def letter(self, text: str, case: str) -> str:
        """The letter of a note at the row of a case."""
        form = OTHER_LOAD if text.startswith(OTHER_LOAD) else _NUMBER.sub("#", text)
        self._texts.setdefault(form, {}).setdefault(text, set()).add(case)
        number = [*self._texts].index(form)
        return _LETTERS[number] if number < len(_LETTERS) else "*"

    def all(self, rows: int) -> tuple[tuple[str, str], ...]:
        """Each letter with its text; without a letter for what is noted of all rows."""
        letters = []
        for number, texts in enumerate(self._texts.values()):
            *others, text = sorted(texts, key=_numbers)
            letter = _LETTERS[number] if number < len(_LETTERS) else "*"
            kinds = len({_NUMBER.sub("#", one) for one in texts})
            less = f"; {counted(kinds - 1, 'other')} less" if kinds > 1 else ""
            everywhere = rows > 1 and len(set().union(*texts.values())) == rows
            letters.append(
                (letter, f"{text}{' at most' if others else ''}{less}{' (all rows)' if everywhere else ''}")
            )
        return tuple(letters)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in reversed(_NUMBER.findall(text))]


def figure_texts(result: Result) -> Iterator[tuple[str, str, str]]:
    """Each figure of a result: its metric, its mean with the unit, and how many samples with which range."""
    for figure in figures([result]).values():
        unit, divisor = _scale([figure])
        cell = _cell(figure, (unit, divisor), None, None)
        yield figure.key.metric, f"{cell.text} {unit}", cell.folded


def text_table(results: Iterable[Result], width: int | None = None, published: Baseline | None = None) -> str:
    """All tables of some results for a terminal, at most `width` characters wide (None: as wide as it is);
    published figures and changes as far as there is room.
    """
    parts = []
    for one in wide_tables(results, published):
        held = one.against
        columns = [Column(key, most=_LONGEST) for key in one.keys]
        for head in one.heads:
            columns.append(Column(textwrap.fill(head, _HEAD), right=True))
            if held:
                columns += [Column(held, right=True, drop=4), Column("change", right=True, drop=1)]
        columns.append(Column("note"))
        rows = [
            [
                *row.labels,
                *itertools.chain.from_iterable(_texts(cell, bool(held)) for cell in row.cells),
                row.letters,
            ]
            for row in one.rows
        ]
        notes = "".join(f"  {letter}: {line(text)}\n" for letter, text in one.notes)
        parts.append(f"{one.title} ({one.benchmark})\n{table(columns, rows, width)}{notes}")
    return "\n".join(parts)


def _texts(cell: Cell | None, held: bool) -> list[str]:
    first = next((c for c in cell.changes if c.figure), None) if cell else None
    beside = [first.figure, first.percent] if first else ["", ""]
    return [cell.text if cell else "-", *(beside if held else [])]
