"""What the tables of the guide look like: `tables/<benchmark>.yaml`, and their order.

Metrics, units and directions are the catalogue's; a declaration states them only for benchmarks
that the catalogue has no module for (tables of old guides, which can be read but not measured).
docs/performance-guide.md describes the keys.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.model.errors import UsageError
from evmperf.model.results import Direction, Metric
from evmperf.model.units import Unit
from evmperf.published.dialect import UNIT_TEXTS, Dialect

FOLDER = Path(__file__).parent / "tables"
BOARD = "{BOARD}"
"""Stands for a board's own subsection in a section's path."""


@dataclass(frozen=True)
class Artefact:
    """Figures known to be wrong: shown, and not judged. An empty tuple means all of that kind.

    They are wrong in published guides only, unless `measured_too`.
    """

    why: str
    rows: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    measured_too: bool = False

    def covers(self, row: str, metric: str, board: str, release: str) -> bool:
        """Whether a figure is one of these."""
        return all(
            not wanted or given in wanted
            for wanted, given in (
                (self.rows, row),
                (self.metrics, metric),
                (self.boards, board),
                (self.releases, release),
            )
        )


@dataclass(frozen=True)
class Table:
    """How one benchmark's table is printed. `columns` has the header texts by metric, the one to
    write first; `{n}` in both stands for a number (CPU 0, CPU 1, ...).
    """

    benchmark: str
    title: str
    sections: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    captions: tuple[str, ...] = ()
    rubric: str = ""
    board_in_header: bool = True
    decimals: int = 2
    order: str | tuple[str, ...] = "text"
    rows: Mapping[str, str] = field(default_factory=dict)
    """Case by printed row label, where they differ; the first label of a case is written."""
    row_order: tuple[str, ...] = ()
    row_units: Mapping[str, str] = field(default_factory=dict)
    """Spelling of the unit in the row label (a key of UNIT_TEXTS), by case."""
    empty: Mapping[str, str] = field(default_factory=dict)
    """Text of a missing figure, by metric."""
    unit_in_cell: bool = False
    """Whether each cell carries its unit."""
    tool: str = ""
    """The program behind published figures, where evmperf measures with another one."""
    artefacts: tuple[Artefact, ...] = ()
    prose: str = ""
    own_driver: str = ""
    own_metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    own_row_better: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Benchmark | None:
        """The catalogue's module, if there is one."""
        return catalogue.benchmarks().get(self.benchmark)

    @property
    def driver(self) -> str:
        """The hardware block."""
        return self.module.driver if self.module else self.own_driver

    def metric(self, case: str, name: str) -> Metric | None:
        """The metric of one row: the catalogue's, or the declaration's own; None if unknown."""
        if self.module and (found := _of_module(self.module, case, name)):
            return found
        if self.row_units:
            code = self.row_units.get(case)
            if code is None or name not in self.columns:
                return None
            better = Direction(self.own_row_better.get(case, "none"))
            return Metric(name, UNIT_TEXTS[code].unit, better, self.columns[name][0])
        for pattern, (unit, better_text) in self.own_metrics.items():
            if numbered(pattern, name) is not None:
                return Metric(name, Unit(unit), Direction(better_text), name)
        return None

    def case_of(self, label: str) -> str:
        """The case that a printed row label stands for (without its unit)."""
        return self.rows.get(label, label)

    def label_of(self, case: str, dialect: Dialect) -> str:
        """The printed label of a case, with its unit where this table prints units there."""
        for label, known in self.rows.items():
            if known == case:
                return label
        code = self.row_units.get(case)
        return case if code is None else f"{case} ({UNIT_TEXTS[code].text(dialect)})"

    def metric_of_header(self, header: str) -> str | None:
        """The metric of a column header (without its board)."""
        for name, texts in self.columns.items():
            for text in texts:
                number = numbered(text, header)
                if number is not None:
                    return name.replace("{n}", number)
        return None

    def header_of(self, metric: str) -> str:
        """The column header to write for a metric; raises KeyError for one without a column."""
        for name, texts in self.columns.items():
            number = numbered(name, metric)
            if number is not None:
                return texts[0].replace("{n}", number)
        raise KeyError(metric)

    def artefact(self, row: str, metric: str, board: str, release: str) -> Artefact | None:
        """Why a figure is known to be wrong, if it is."""
        found = (a for a in self.artefacts if a.covers(row, metric, board, release))
        return next(found, None)


def numbered(pattern: str, text: str) -> str | None:
    """The number that `{n}` in a pattern stands for, "" for a pattern without; None: no match."""
    if "{n}" not in pattern:
        return "" if pattern == text else None
    match = re.fullmatch(re.escape(pattern).replace(r"\{n\}", r"(\d+)"), text)
    return match[1] if match else None


def _of_module(module: Benchmark, case: str, name: str) -> Metric | None:
    for profile in module.profiles.values():
        for known in profile.cases:
            if known.label == case:
                return next((m for m in module.metrics_of(known) if m.name == name), None)
    return next((metric for metric in module.metrics if metric.name == name), None)


@functools.cache
def tables() -> Mapping[str, Table]:
    """Every declared table by benchmark, in the guide's order."""
    found = {path.stem: _load(path) for path in sorted(FOLDER.glob("*.yaml"))}
    order = {name: number for number, name in enumerate(outline().order)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


@dataclass(frozen=True)
class Outline:
    """The order of the tables, and what the guide says at the head of a section."""

    order: Sequence[str]
    prose: Mapping[tuple[str, ...], str]


@functools.cache
def outline() -> Outline:
    """Read outline.yaml."""
    data = _read(FOLDER.parent / "outline.yaml")
    prose = {tuple(entry["section"]): str(entry["prose"]) for entry in data["sections"]}
    return Outline(tuple(data["order"]), prose)


def _read(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: is not YAML: {error}") from error


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _load(path: Path) -> Table:
    data = dict(_read(path))
    try:
        return Table(
            benchmark=path.stem,
            title=data.pop("title"),
            sections=tuple(tuple(section) for section in data.pop("sections")),
            keys=tuple(data.pop("keys")),
            columns={name: tuple(texts) for name, texts in data.pop("columns").items()},
            captions=tuple(data.pop("captions", ())),
            order=_order(data.pop("order", "text")),
            row_order=tuple(str(row) for row in data.pop("row_order", ())),
            artefacts=tuple(_artefact(entry) for entry in data.pop("artefacts", ())),
            own_driver=data.pop("driver", ""),
            own_metrics={k: (u, b) for k, (u, b) in data.pop("metrics", {}).items()},
            own_row_better={
                row: better for better, rows in data.pop("row_better", {}).items() for row in rows
            },
            **data,
        )
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path}: does not describe a table: {error}") from error


def _order(order: str | list[str]) -> str | tuple[str, ...]:
    return order if isinstance(order, str) else tuple(order)


def _artefact(data: Mapping[str, Any]) -> Artefact:
    lists = {k: tuple(str(x) for x in v) for k, v in data.items() if isinstance(v, list)}
    return Artefact(data["why"], measured_too=bool(data.get("measured_too")), **lists)
