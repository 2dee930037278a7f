"""The vocabulary of evmperf: metric, case, reading, sample, result (see docs/data-model.md).

The version of run.json and of the records of results.jsonl is SCHEMA. A field that is added with a default
needs no new one, anything else does: a reader refuses what is later than it. Whoever raises SCHEMA says in
HISTORY what changed and keeps a recorded spool of the version before in selftests/data/spool.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from evmperf.model import limits
from evmperf.model.errors import EvmperfError, Kind, RefusedOutput
from evmperf.model.state import State
from evmperf.model.units import Unit, counted

HISTORY: Mapping[int, str] = {
    1: "the first: result, boot, verdict, unknown",
    2: "a sample may have an error; what has its default is left out; readers ignore fields that "
    "they do not know",
}
"""Version to what changed with it. All of 1 is valid in 2, so nothing is converted."""

SCHEMA = max(HISTORY)
"""What this evmperf writes; it reads all up to that."""


class SpoolRecord(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=True, omit_defaults=True
):
    """One line of results.jsonl."""


_Record = TypeVar("_Record", bound=SpoolRecord)
_Row = tuple[str, str, object]
"""Benchmark, case and way of measuring."""


class Header(msgspec.Struct, frozen=True):
    """What every line begins with, whatever it is."""

    schema: int
    record: str = ""


class Direction(enum.StrEnum):
    """Which way a metric gets better."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"


LOWER, HIGHER = "lower_is_better", "higher_is_better"
"""Metrics of series that others measured, which no catalogue has."""


@dataclass(frozen=True)
class Metric:
    """One measured quantity. Values beyond `low` and `high` (in `unit`) are refused; `required` is false for
    quantities that some boards lack.
    """

    name: str
    unit: Unit
    better: Direction
    title: str
    low: float = -math.inf
    high: float = math.inf
    required: bool = True

    def check(self, value: float, raw: str = "") -> None:
        """Raise RefusedOutput unless `value` (in this metric's unit) is plausible."""
        if not abs(value) <= limits.REAL or not self.low <= value <= self.high:
            raise RefusedOutput(
                f"{self.name} of {value:g} {self.unit} is not plausible "
                f"(expected {self.low:g} to {self.high:g})",
                raw,
            )


ParamValue = str | int | float


@dataclass(frozen=True)
class Case:
    """One row of a benchmark's table: its name, its parameters, and its own metrics, if any."""

    label: str
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()

    def __str__(self) -> str:
        return self.label


VARIANT = "variant"
"""The condition of a result that names the way of measuring, where there are several."""
REPEAT = "repeat"
"""The condition of a result that says how often its case was measured, if that was requested."""
MARKS = "marks"
"""The condition of a result with notes for readers of its figures."""
OTHER_LOAD = "other load: "
"""How a mark of processes beside a case begins."""


@dataclass(frozen=True)
class Reading:
    """One number as a parser gives it: metric name and value in the metric's declared unit.

    `error` is its measured maximum error in that unit. `variant` says why it is another quantity than
    the declared one, `mark` is a note for readers; both go into the result's conditions.
    """

    metric: str
    value: float
    error: float | None = None
    variant: str = ""
    mark: str = ""


class Sample(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One number of one metric of one case, of one repetition (counted from 0).

    `time_ns` is the end of the measurement in nanoseconds since the Unix epoch; with run, case and
    metric it identifies the sample. `error` is the maximum error of `value` in `unit`, None if unknown.
    """

    metric: str
    value: limits.Real
    unit: str
    repetition: limits.Ordinal
    time_ns: limits.Count
    error: limits.Real | None = None


class Status(enum.StrEnum):
    """How a case ended."""

    MEASURED = "measured"
    """Every declared metric has all its samples."""
    PARTIAL = "partial"
    """Some samples are there, some are missing; the failures say why."""
    REFUSED = "refused"
    """The tool ran, but its output holds nothing that can be vouched for."""
    FAILED = "failed"
    """Nothing was measured."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that went wrong while a case was measured."""

    kind: Kind
    message: str
    step: str = ""
    refused: bool = False
    raw: str = ""
    """Name of the raw file below the run's folder, if the output was kept."""

    @classmethod
    def of(cls, error: EvmperfError, step: str = "", raw: str = "") -> Failure:
        """Make the record of an error."""
        return cls(error.kind, limits.shortened(str(error)), step, isinstance(error, RefusedOutput), raw)


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure as a guide printed it, in `unit`; `low` and `high` are None where only the mean was printed.
    `text` is the printed cell if it does not follow from the numbers ("~11.04", "403 KB/s"), `line` its line.
    """

    metric: str
    unit: str
    mean: limits.Real
    low: limits.Real | None = None
    high: limits.Real | None = None
    text: str = ""
    line: limits.Ordinal = 0
    doubt: str = ""
    """Why it is not judged: what others of its guide, or its board's other releases, show; "" for nothing."""


class Result(SpoolRecord, frozen=True, tag="result"):
    """All samples of one case in one run, with its status, the names of its raw outputs, and its programs.
    `duration_s` is the wall time of the case, `tool_s` that of its commands on the board, both in seconds.
    """

    benchmark: str
    version: limits.Ordinal
    driver: str
    case: str
    params: Mapping[str, ParamValue]
    profile: str
    status: Status
    samples: tuple[Sample, ...] = ()
    failures: tuple[Failure, ...] = ()
    tools: Mapping[str, str] = msgspec.field(default_factory=dict)
    conditions: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Conditions of this case beyond the run's facts (device, medium, ...)."""
    raw: tuple[str, ...] = ()
    started_ns: limits.Count = 0
    duration_s: limits.Real = 0.0
    tool_s: limits.Real = 0.0
    published: tuple[Published, ...] = ()
    """Figures of an imported guide, without samples."""
    state: State | None = None
    """The state of the board around the case; None if it was not read."""

    @property
    def refused(self) -> int:
        """How many of its outputs were refused."""
        return sum(failure.refused for failure in self.failures)

    def flaws(self) -> list[str]:
        """What went wrong, counted: `2 refused`, `1 failed`."""
        counts = {"refused": self.refused, "failed": len(self.failures) - self.refused}
        return [f"{count} {what}" for what, count in counts.items() if count]

    def error(self, metric: str) -> float | None:
        """The maximum error of a metric's samples, None if it was not measured."""
        errors = [s.error for s in self.samples if s.metric == metric and s.error is not None]
        return max(errors, default=None)

    def values(self, metric: str) -> list[float]:
        """All values of one metric, in its declared unit, in the order of measuring."""
        return [s.value for s in self.samples if s.metric == metric]


def as_rows(read: Callable[[], Iterable[_Record]]) -> Iterator[_Record | Result]:
    """Records, which are read twice, with all executions of a case as one result, in the place of its last.

    A run has several where a case was asked for twice (pytest-repeat) or tried again (pytest-rerunfailures).
    """
    left = Counter(row for record in read() if (row := _row(record)))
    executions: dict[_Row, list[Result]] = {}
    for record in read():
        if isinstance(record, Result) and (row := _row(record)):
            left[row] -= 1
            if left[row] or row in executions:
                executions.setdefault(row, []).append(record)
            if left[row]:
                continue
            if row in executions:
                yield _together(executions.pop(row))
                continue
        yield record


def _row(record: SpoolRecord) -> _Row | None:
    """What a result is the row of; None for other records, and for figures of a guide."""
    if isinstance(record, Result) and not record.published:
        return record.benchmark, record.case, record.conditions.get(VARIANT)
    return None


def _together(executions: Sequence[Result]) -> Result:
    """One result of several executions: the samples of all, numbered on. It is whole if the last one is."""
    samples: list[Sample] = []
    first, conditions = 0, dict[str, Any]()
    for one in executions:
        samples += (replace(sample, repetition=first + sample.repetition) for sample in one.samples)
        first += 1 + max((sample.repetition for sample in one.samples), default=-1)
        conditions |= one.conditions
    if (number := sum(bool(one.samples) for one in executions)) > 1:
        conditions[REPEAT] = counted(number, "execution")
    last = executions[-1]
    in_part = samples and last.status is not Status.MEASURED
    return replace(
        last,
        status=Status.PARTIAL if in_part else last.status,
        samples=tuple(samples),
        failures=tuple(failure for one in executions for failure in one.failures),
        conditions=conditions,
        raw=tuple(name for one in executions for name in one.raw),
        started_ns=executions[0].started_ns,
        duration_s=sum(one.duration_s for one in executions),
        tool_s=sum(one.tool_s for one in executions),
    )
