"""How the guides print each table: `tables/<benchmark>.yaml`, and their order (outline.yaml).
The benchmark's module says what is measured (title, section, rows, metrics); a table without a module states
both, a benchmark that no guide has needs no file. docs/performance-guide.md describes the keys.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from evmperf.benchmarks import catalogue, control, energy
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.results import Direction, Metric
from evmperf.model.units import Unit

FOLDER = Path(__file__).parent / "tables"
BOARD = "{BOARD}"
"""Stands for a board's own subsection in a section's path."""

QUICK_MARK = "(quick profile"
"""In the caption of a table that was not measured with the published parameters."""
AGAIN = " (again)"
"""Behind the case of a figure that stands twice in a guide with two values, where it stands again."""
_OF_MODULES = {"title", "section", "driver", "metrics", "not_measured"}
"""What only the file of a table without a module says."""
_SPELT = yamlfile.own("judge/published/units.yaml")
ROW_UNITS = msgspec.convert(_SPELT["rows"], dict[Unit, tuple[str, ...]])
"""How guides spell a unit in row labels: the usual spelling first. The case of letters differs by release."""
COLUMN_UNITS = msgspec.convert(_SPELT["columns"], dict[Unit, str])
"""How guides spell the unit of most columns, behind the title."""
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one benchmark's table is printed. `columns` has the header texts by metric, the one to
    write first; `{n}` in both stands for a number (CPU 0, CPU 1, ...).
    """

    benchmark: str
    title: str
    section: tuple[str, ...]
    about: Mapping[str, str] = {}
    """What the guides' words mean by which the table is found, by quantity (for who reads guides)."""
    keys: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    captions: tuple[str, ...] = ()
    """The first is written; () for a table that has none."""
    text_columns: Mapping[str, tuple[str, ...]] = {}
    """Header texts of columns of words, by name: conditions, not figures."""
    lists: Mapping[str, str] = {}
    """Header of a column whose cells have one number for each `{n}` ("6,6"), by metric."""
    rubric: str = ""
    """Heading printed above the table and below its section, which the outline does not have."""
    board_in_header: bool = True
    """False: the columns name no board."""
    decimals: int = 2
    free_decimals: bool = False
    """Whether figures were typed by hand, with any number of decimals."""
    order: str | tuple[str, ...] = "text"
    """Of the rows: `text`, `number`, `hex`, or a list."""
    cases: tuple[str, ...] = ()
    """The rows of the benchmark."""
    more_rows: str = ""
    """Rows that guides have besides, as a regular expression."""
    labels: Mapping[str, str] = {}
    """Case by printed row label, where they differ; the first label of a case is written."""
    aliases: Mapping[str, str] = {}
    """Rows that are a second name of another."""
    units_in_labels: bool = False
    """Whether row labels end in a unit, spelt as in units.yaml."""
    empty: Mapping[str, str] = {}
    """Text of a missing figure, by metric."""
    quotients: Mapping[str, float] = {}
    """Of rows whose program divides this number by whole seconds or ticks, so that it can only
    print its quotients, by case."""
    unit_in_cell: bool = False
    """Whether each cell carries its unit."""
    short_rows: tuple[tuple[str, str], ...] = ()
    """Release and case of published rows that lack cells at their end."""
    tool: str = ""
    """The program behind published figures, where evmperf measures with another one."""
    remark: str = ""
    """What is not said of such a table where others like it say it."""
    not_measured: str = ""
    """Why evmperf reads the table and does not measure it."""
    driver: str = ""
    """The hardware block."""
    metrics: tuple[Metric, ...] = ()
    of_rows: Mapping[str, tuple[Metric, ...]] = {}
    """Metrics of rows that have their own, by case."""

    @property
    def module(self) -> Benchmark | None:
        """The catalogue's module, if there is one."""
        return catalogue.benchmarks().get(self.benchmark)

    def metric(self, case: str, name: str) -> Metric | None:
        """The metric of one row: the catalogue's, or the declaration's own; None if unknown."""
        for metric in self.of_rows.get(case.removesuffix(AGAIN), self.metrics):
            if metric.name == name:
                return metric
        for metric in () if self.module else self.metrics:
            if numbered(metric.name, name) is not None:
                return replace(metric, name=name)
        return self.module.more(name) if self.module else None

    def case_of(self, label: str) -> str:
        """The case that a printed row label stands for (without its unit)."""
        for text, case in self.labels.items():
            if numbered(text.lower(), label.strip().lower()) is not None:
                return case
        if label.endswith(" bytes") and self.knows(label.removesuffix(" bytes")):
            return label.removesuffix(" bytes")
        if label not in self.cases and _ADDRESS.search(label):
            # The guides' commands have the address of TI's tester.
            without_address = _ADDRESS.sub("*", label)
            return next((case for case in self.cases if _ADDRESS.sub("*", case) == without_address), label)
        return label

    def knows(self, case: str) -> bool:
        """Whether guides have such a row."""
        if case in self.cases or case in self.labels.values():
            return True
        return bool(self.more_rows and re.fullmatch(self.more_rows, case))

    def row_unit(self, case: str) -> Unit | None:
        """The unit that a row's label ends with; None where it has none."""
        metric = self.metric(case, next(iter(self.columns))) if self.units_in_labels else None
        return metric.unit if metric and metric.unit in ROW_UNITS else None

    def label_of(self, case: str, count: int = 0) -> str:
        """The printed label of a case, with its unit or `count` of measurements where the table does."""
        if (label := self._special(case)) not in ("", case):
            count = count or (self.module.profiles["full"].repeats if self.module else 1)
            return label.replace("{n}", str(count))
        unit = self.row_unit(case)
        return f"{case} ({ROW_UNITS[unit][0]})" if unit else case

    def counts(self, case: str) -> bool:
        """Whether the label of a row says how many times it was measured."""
        return "{n}" in self._special(case)

    def _special(self, case: str) -> str:
        """The first declared label of a case; "" where none is."""
        return next((label for label, labelled in self.labels.items() if labelled == case), "")

    def header_of(self, metric: str) -> str:
        """The column header to write for a metric; "" for one without a column."""
        for name, texts in self.columns.items():
            if (number := numbered(name, metric)) is not None:
                return texts[0].replace("{n}", number)
        return ""

    def place(self, label: str) -> tuple[int, tuple[str, ...]]:
        """What the rows of this table are sorted by, of those that stand again behind the first."""
        case = label.removesuffix(AGAIN)
        again = label.removeprefix(case)
        if isinstance(self.order, tuple):
            return (self.order.index(case) if case in self.order else len(self.order), (case, again))
        if self.order in ("number", "hex"):
            return (int(case, 16 if self.order == "hex" else 10), (again,))
        return (0, (*case.split("|"), again))


@dataclass(frozen=True)
class MatchedColumn:
    """One column: whose, and what. `board` is "" where the header names none; `words` is for
    columns of text, `listed` for those with one number for each `{n}` of their metric in a cell.
    """

    board: str
    title: str
    metric: str
    printed: str = ""
    words: bool = False
    listed: bool = False


def numbered(pattern: str, text: str) -> str | None:
    """The number that `{n}` in a pattern stands for, "" for a pattern without; None: no match."""
    if "{n}" not in pattern:
        return "" if pattern == text else None
    match = re.fullmatch(re.escape(pattern).replace(r"\{n\}", r"([0-9]+)"), text)
    return match[1] if match else None


@functools.cache
def tables() -> Mapping[str, Table]:
    """Every table by benchmark, in the guide's order; those that no published guide has come last."""
    by_name = {path.stem: load(path) for path in sorted(FOLDER.glob("*.yaml"))}
    for name, module in catalogue.benchmarks().items():
        if name not in by_name:
            by_name[name] = _undeclared(module)
    order = {name: number for number, name in enumerate(outline().order)}
    return dict(sorted(by_name.items(), key=lambda item: order.get(item[0], len(order))))


def metric(key: Key) -> Metric | None:
    """The metric of a figure of any kind, control metrics included; None for an unknown one."""
    if key.benchmark == control.NAME:
        return next((one for one in control.BENCHMARK.metrics if one.name == key.metric), None)
    table = tables().get(key.benchmark)
    return (table.metric(key.case, key.metric) if table else None) or energy.METRICS.get(key.metric)


class Outline(msgspec.Struct, frozen=True):
    """The order of the tables, and what the guide says at the head of sections, by `HEADING > HEADING`."""

    order: tuple[str, ...]
    sections: Mapping[str, str]


@functools.cache
def outline() -> Outline:
    """Read outline.yaml."""
    return msgspec.convert(yamlfile.own("judge/published/outline.yaml"), Outline)


def load(path: Path) -> Table:
    """Read one table's file; raises UsageError with the file for one that describes none."""
    data, measured = _with_base(path)
    modules = catalogue.benchmarks()
    try:
        return _table(path, data, modules.get(path.stem) or modules.get(measured))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: does not describe a table: {error}") from error


def _with_base(path: Path) -> tuple[dict[str, object], str]:
    """What a file says, with what it takes from the table that it is like (columns, keys, rows, on
    another device), and the benchmark whose metrics it has.
    """
    data = yamlfile.read(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: does not describe a table")
    like = data.pop("like", None)
    if like is None:
        return data, path.stem
    other = FOLDER / f"{like}.yaml"
    if not other.is_file():
        raise UsageError(f"{path}: there is no table {like!r}")
    base, measured = _with_base(other)
    kept = {name: value for name, value in base.items() if name not in ("captions", "section")}
    return kept | data, measured


def _table(path: Path, data: dict[str, Any], module: Benchmark | None) -> Table:
    own = data.pop("metrics", {})
    for unit, better in own.values():
        boards.check_word(path, "metrics", unit, [*Unit])
        boards.check_word(path, "metrics", better, [*Direction])
    if module and module.name == path.stem:
        if twice := (_OF_MODULES & set(data)) | ({"metrics"} if own else set()):
            raise UsageError(f"{path}: {min(twice)} is already used by the benchmark {module.name}")
        data |= {"title": module.title, "section": module.section, "driver": module.driver}
    data |= _measured(module)
    if own:
        metrics = [Metric(name, Unit(unit), Direction(way), name) for name, (unit, way) in own.items()]
        data |= {"metrics": metrics, "of_rows": {}}
    data["columns"] = _columns(path, data["columns"], module.metrics if module else data["metrics"])
    return msgspec.convert({"captions": (data["title"],), **data, "benchmark": path.stem}, Table)


def _measured(module: Benchmark | None) -> dict[str, Any]:
    """What a table has of the benchmark that measures it."""
    if module is None:
        return {"metrics": ()}
    cases = [case for profile in [*module.profiles.values()][::-1] for case in profile.cases]
    return {
        "metrics": module.metrics,
        "of_rows": {case.label: case.metrics for case in cases if case.metrics},
        "cases": tuple(case.label for case in module.cases("full")),
    }


def _undeclared(module: Benchmark) -> Table:
    """A table as its benchmark says it. The key columns are headed by the first parameters."""
    measured = _measured(module)
    first = next(iter(module.cases("full")))
    keys = [name.replace("_", " ").capitalize() for name in first.params]
    units = {module.metrics_of(case)[0].unit for case in module.cases("full")}
    return Table(
        benchmark=module.name,
        title=module.title,
        section=module.section,
        keys=tuple(keys[: first.label.count("|") + 1]),
        columns={metric.name: (metric.title,) for metric in module.metrics},
        captions=(module.title,),
        order=measured["cases"],
        units_in_labels=len(units) > 1,
        driver=module.driver,
        **measured,
    )


def _columns(
    path: Path, given: Sequence[str] | Mapping[str, Sequence[str]], metrics: Sequence[Metric]
) -> dict[str, tuple[str, ...]]:
    """Header texts by metric. `*`, or only the metric's name, is its title and its unit."""
    if not isinstance(given, Mapping):
        given = dict.fromkeys(given, ("*",))
    titled = [metric for metric in metrics if metric.unit in COLUMN_UNITS]
    titles = {metric.name: f"{metric.title} {COLUMN_UNITS[metric.unit]}" for metric in titled}
    headers = {}
    for name, texts in given.items():
        if "*" in texts and name not in titles:
            raise UsageError(f"{path}: columns: {name} has no header, and none follows from it")
        headers[name] = tuple(titles[name] if text == "*" else text for text in texts)
    return headers
