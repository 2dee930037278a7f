"""Line protocol from the records of a run, a year of a lab in minutes (schema: docs/results.md)."""

import functools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evmperf.measure.runs.history import ADDRESSES, BOOT_MARK, GUIDE, RESULT, RUN, SAMPLE, UNKNOWN, VERDICT
from evmperf.model import anytime
from evmperf.model.figures import Key
from evmperf.model.outlets import TEXT_LIMIT, html, tag_value, text_field
from evmperf.model.records import BootMark, BootRecord, VerdictRecord
from evmperf.model.results import REPEAT, Result, Sample, SpoolRecord, Status
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome

SCHEMA = 2
"""Version of what is stored; a field of every run's point. In 1, all points had the tag `release`."""


@functools.lru_cache(maxsize=10_000)
def _tags(**tags: str) -> str:
    """Tags by name, which spares the server the sorting, without empty ones."""
    return "".join(f",{name}={tag_value(tags[name])}" for name in sorted(tags) if tags[name])


def _fields(**fields: str | float | bool | None) -> str:
    """Fields by type: text quoted, whole numbers with their i; None and "" are left out."""
    shown = []
    for name, value in fields.items():
        if value is None or value == "":
            continue
        if isinstance(value, str):
            shown.append(f"{name}={text_field(value)}")
        elif isinstance(value, bool):
            shown.append(f"{name}={str(value).lower()}")
        elif isinstance(value, int):
            shown.append(f"{name}={value}i")
        elif math.isfinite(value):
            shown.append(f"{name}={value!r}")
    return ",".join(shown)


def _of(record: object, names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names.split()}


def _texts(**texts: str) -> str:
    """Further fields, said where they are empty, too: SQL knows no column that no point has."""
    return "".join(f",{name}={text_field(text)}" for name, text in texts.items())


_encode = msgspec.json.Encoder(order="sorted").encode


def _json(value: object) -> str:
    """A structure as text; "" for an empty one, and for one that would have to be cut."""
    text = _encode(value).decode() if value else ""
    return text if len(text) <= TEXT_LIMIT else ""


def _refused(result: Result) -> int:
    return sum(failure.refused for failure in result.failures)


@dataclass
class Totals:
    """What the run's point says of its records: counts, and seconds."""

    cases: int = 0
    boots: int = 0
    failed_boots: int = 0
    refused_outputs: int = 0
    retried: int = 0
    measured_s: float = 0.0
    tool_s: float = 0.0
    by_status: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Status), 0))
    verdicts: dict[Key, str] = field(default_factory=dict)

    def add(self, record: SpoolRecord) -> None:
        """Count one record."""
        if isinstance(record, Result):
            self.cases += 1
            self.by_status[record.status] += 1
            refused = _refused(record)
            self.refused_outputs += refused
            # A refused step is done once more: what is whole in the end was retried with success.
            self.retried += bool(refused and record.status == Status.MEASURED)
            self.measured_s += record.duration_s
            self.tool_s += record.tool_s
        elif isinstance(record, BootRecord):
            self.boots += 1
            self.failed_boots += record.failure is not None
        elif isinstance(record, VerdictRecord):
            self.verdicts[record.key] = record.verdict

    @property
    def by_verdict(self) -> dict[str, int]:
        """The number of figures by outcome; zeros replace earlier ones, and are columns for SQL."""
        counts = Counter(self.verdicts.values())
        return {word: counts[word] for word in Outcome}


class Lines:
    """Makes the lines of one run's records. The run's tags are those of `run` when it is made."""

    def __init__(self, run: Run) -> None:
        self._run = run
        names = ("board", "kind", "lab", "os", "place", "profile")
        self._common = {name: getattr(run, name) for name in names}
        self._release = run.release or UNKNOWN
        self._of_run = {**self._common, "release": self._release}
        if run.kind == GUIDE:
            # Guides have no times: their releases keep them apart.
            self._common = self._of_run

    def of(self, record: SpoolRecord) -> Iterator[str]:
        """The lines of one record; kinds that a database has no use for give none."""
        if isinstance(record, Result):
            yield self._result(record)
            yield from self._samples(record)
            yield from self._published(record)
        elif isinstance(record, BootRecord):
            yield from self._boot(record)
        elif isinstance(record, VerdictRecord):
            yield self._verdict(record)

    def run(self, totals: Totals) -> str:
        """The line of the run itself."""
        run, facts = self._run, self._run.facts
        ended = run.ended_ns or None
        fields = _fields(
            schema=SCHEMA,
            run=run.id,
            ended_ns=ended,
            duration_s=(ended - run.started_ns) / 1e9 if ended else None,
            outcome=run.outcome or "It has not ended, or was killed.",
            exit_status=run.exit_status,
            power_cycles=totals.boots if facts.attempts is None else facts.attempts,
            **_of(totals, "boots failed_boots cases"),
            **totals.by_status,
            **_of(totals, "refused_outputs retried"),
            **{f"verdict_{word.replace(' ', '_')}": n for word, n in totals.by_verdict.items()},
            **_of(totals, "measured_s tool_s"),
            **_of(facts, "kernel uboot image"),
            revision=facts.evmperf_revision,
            run_release=self._release,
            results_url=run.addresses.get("results"),
            facts=_json(facts.to_dict()),
        )
        addresses = {**run.addresses, "report": run.report}
        # Grafana shows marks as HTML.
        marks = {"release_text": html(self._release), "lab_text": html(run.lab)}
        place = run.place or run.lab or UNKNOWN
        fields += _texts(**{f"{name}_url": addresses.get(name) or "" for name in ADDRESSES}, **marks)
        fields += _texts(place_text=place)
        return f"{RUN}{_tags(**self._of_run)} {fields} {run.started_ns}"

    def _result(self, record: Result) -> str:
        refused = _refused(record)
        fields = _fields(
            run=self._run.id,
            status=record.status,
            samples=len(record.samples),
            refused=refused,
            failed=len(record.failures) - refused,
            **_of(record, "duration_s tool_s version"),
            params=_json(record.params),
            tools=_json(record.tools),
            repeat=record.conditions.get(REPEAT),
            **_intervals(record),
            conditions=_json(record.conditions),
            failures=_json(record.failures),
        )
        fields += _texts(cause=record.failures[-1].message if record.failures else "")
        return f"{RESULT}{self._case_tags(record)} {fields} {self._started_ns(record)}"

    def _started_ns(self, record: Result) -> int:
        """When the case began; the figures of a guide have only their run's time."""
        return record.started_ns or self._run.started_ns

    def _samples(self, record: Result) -> list[str]:
        samples = record.samples
        refused = _refused(record)
        tail = (
            f",run={text_field(self._run.id)},status={text_field(record.status)}"
            f",run_release={text_field(self._release)},refused={refused}i,started_ns={self._started_ns(record)}i,repetition="
        )
        heads = {
            (metric, unit): f"{SAMPLE}{self._case_tags(record, metric=metric)} unit={text_field(unit)},value="
            for metric, unit in {(s.metric, s.unit) for s in samples}
        }
        # The repetition's number as nanoseconds keeps samples apart that were given one time
        # (those of a guide); `reader` takes it off again.
        return [
            f"{heads[s.metric, s.unit]}{s.value!r}{_error(s)}{tail}{(n := s.repetition)}i {s.time_ns + n}"
            for s in samples
        ]

    def _published(self, record: Result) -> Iterator[str]:
        """A guide's figures: a mean with what else was printed, no samples behind it."""
        for figure in record.published:
            fields = _fields(
                **{"unit": figure.unit, "value": figure.mean, **_of(figure, "low high text")},
                run=self._run.id,
                run_release=self._release,
                status=record.status,
                refused=0,
                repetition=0,
                started_ns=self._started_ns(record),
            )
            tags = self._case_tags(record, metric=figure.metric)
            yield f"{SAMPLE}{tags} {fields} {self._started_ns(record)}"

    def _boot(self, record: BootRecord) -> Iterator[str]:
        failure = record.failure
        marks = record.marks or (BootMark("none", 0, record.started_ns, 0.0),)
        power_on = next((m.mono_ns for m in marks if m.phase == "power_on"), None)
        for mark in marks:
            since = None if power_on is None else (mark.mono_ns - power_on) / 1e9
            fields = _fields(
                run=self._run.id,
                run_release=self._release,
                since_power_on_s=since,
                error_s=mark.error_s,
                failed=int(failure is not None),
                kernel_arguments=record.kernel_arguments,
                started_ns=record.started_ns,
            )
            fields += _texts(failure=failure.message if failure else "")
            tags = _tags(**self._common, goal=record.goal, phase=mark.phase)
            yield f"{BOOT_MARK}{tags} {fields} {mark.wall_ns}"

    def _verdict(self, record: VerdictRecord) -> str:
        verdict = _of(record, "verdict reason baseline change")
        fields = _fields(run=self._run.id, run_release=self._release, **verdict)
        fields += _texts(**_of(record, "goal reached owner"))
        tags = self._case_tags(record, metric=record.metric)
        return f"{VERDICT}{tags} {fields} {self._run.started_ns}"

    def _case_tags(self, record: Result | VerdictRecord, metric: str = "") -> str:
        return _tags(
            **self._common, benchmark=record.benchmark, case=record.case, driver=record.driver, metric=metric
        )


def _intervals(record: Result) -> dict[str, float | None]:
    """Half of the 95 % interval of each metric's mean, as a share of it, for repeated cases."""
    if REPEAT not in record.conditions:
        return {}
    names = {sample.metric for sample in record.samples}
    return {f"known_{name}": anytime.half_width(record.values(name)) for name in sorted(names)}


def _error(sample: Sample) -> str:
    """The field of a sample's stated error, "" where it has none."""
    return "" if sample.error is None else f",error={sample.error!r}"
