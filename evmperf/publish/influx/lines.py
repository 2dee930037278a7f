"""Line protocol from the records of a run (docs/results.md has the schema and the reason of each field)."""

import functools
import json
import math
from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace

from evmperf.judge.judge import is_open_loss
from evmperf.judge.published.record import release_key
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import ADDRESSES, GUIDE, UNKNOWN
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.figures import Key
from evmperf.model.outlets import TEXT_LIMIT, html, tag_value, text_field
from evmperf.model.records import BootRecord, VerdictRecord
from evmperf.model.results import Result, SpoolRecord, Status
from evmperf.model.run import Run
from evmperf.model.verdict import GoalWord, Outcome

SCHEMA = 3
"""Version of what is stored. Its measurements have other names than those of 1 and 2: nothing is mixed."""
RUNS, CASES, SAMPLES, BOOTS, VERDICTS, ALARMS = "runs", "cases", "samples", "boots", "verdicts", "alarms"
SUBJECT = ("board", "kind", "lab", "os", "place", "profile")
"""Tags of all points: what has one series."""
NONE = "-"
"""A part of the subject that is not known: a tag cannot be empty, and is there in every point."""

_PARTS, _LARGEST = 4, 999
"""Of a release's numbers: how many order it, and up to which."""


@functools.lru_cache(maxsize=10_000)
def _tags(**tags: str) -> str:
    """Tags by name, which spares the server the sorting."""
    return "".join(f",{name}={tag_value(tags[name]) or NONE}" for name in sorted(tags))


def _fields(**fields: str | float | bool | None) -> str:
    """Fields by type: text quoted, whole numbers with their i; None is left out; names as tags."""
    return ",".join(f"{tag_value(key)}={_value(value)}" for key, value in fields.items() if _is_stored(value))


def _is_stored(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _value(value: object) -> str:
    if isinstance(value, str):
        return text_field(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}i" if isinstance(value, int) else repr(value)


def _record(form: bytes) -> str | None:
    """JSON as text; None for one that would be cut."""
    # DEL is what JSON may hold as it is, and line protocol not.
    text = form.decode().rstrip().replace("\x7f", "\\u007f")
    return text if len(text.encode()) <= TEXT_LIMIT else None


class RunLines:
    """Makes the lines of one run's records, and counts these for the run's own line."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._subject = {name: getattr(run, name) for name in SUBJECT}
        self._release = run.release or UNKNOWN
        self._of_run: dict[str, Any] = {"run": run.id, "release": self._release}
        self._outcomes: dict[Key, str] = {}
        self._alarmed: set[Key] = set()
        counted = ("cases", "unmeasured", "boots", "failed_boots", "refused_outputs", "retried")
        self._sums: dict[str, float] = {**dict.fromkeys(counted, 0), "measured_s": 0.0, "tool_s": 0.0}

    @property
    def time_ns(self) -> int:
        """The time of the run's point. That of a guide is its place among releases, so that the last point of
        a series is that of the latest release.
        """
        if self._run.kind != GUIDE:
            return self._run.started_ns
        numbers = [*release_key(self._release), *[0] * _PARTS][:_PARTS]
        return functools.reduce(lambda sum_, part: sum_ * (_LARGEST + 1) + min(part, _LARGEST), numbers, 0)

    def of(self, record: SpoolRecord) -> list[str]:
        """The lines of one record, in the order of the files; none for kinds that no query needs."""
        sums = self._sums
        if isinstance(record, Result):
            refused, whole = record.refused, record.status == Status.MEASURED
            sums["cases"] += 1
            sums["unmeasured"] += not whole
            sums["refused_outputs"] += refused
            # A refused step is done once more: what is whole in the end was retried with success.
            sums["retried"] += bool(refused and whole)
            sums["measured_s"] += record.duration_s
            sums["tool_s"] += record.tool_s
            began = record.started_ns or self.time_ns  # those of a guide have only their run's time
            return [self._case(record, began), *self._samples(record, began)]
        if isinstance(record, BootRecord):
            sums["boots"] += 1
            sums["failed_boots"] += record.failure is not None
            return [self._boot(record)]
        if isinstance(record, VerdictRecord):
            self._outcomes[record.key] = record.verdict
            if record.alarm:
                self._alarmed.add(record.key)
            tags = self._of_case(record, driver=record.driver, metric=record.metric)
            # A verdict without an alarm takes back that of one before it.
            alarm = [self._alarm(record, tags)] if record.key in self._alarmed else []
            return [self._verdict(record, tags), *alarm]
        return []

    def run(self) -> str:
        """The line of the run itself, after those of all its records."""
        run, facts, outcomes = self._run, self._run.facts, Counter(self._outcomes.values())
        ended, addresses = run.ended_ns or None, {**run.addresses, "report": run.report}
        decided = (Outcome.WORSE, Outcome.BETTER, Outcome.UNKNOWN, Outcome.SAME)
        fields = _fields(
            schema=SCHEMA,
            **self._of_run,
            ended_ns=ended,
            duration_s=(ended - run.started_ns) / 1e9 if ended else None,
            outcome=run.outcome or "It has not ended, or was killed.",
            power_cycles=self._sums["boots"] if facts.attempts is None else facts.attempts,
            **self._sums,
            verdict=next((str(word) for word in decided if outcomes[word]), "not judged"),
            **{str(word).replace(" ", "_"): outcomes[word] for word in Outcome},
            **{f"{name}_url": addresses.get(name) or "" for name in ADDRESSES},
            release_mark=html(self._release),  # Grafana shows marks as HTML
            record=_record(_encoded(run.to_dict())) or _record(_encoded(run.to_dict() | {"facts": {}})),
        )
        return f"{RUNS}{_tags(**self._subject)} {fields} {self.time_ns}"

    def _of_case(self, record: Result | VerdictRecord, **more: str) -> str:
        return _tags(**self._subject, benchmark=record.benchmark, case=record.case, **more)

    def _case(self, record: Result, began: int) -> str:
        values: dict[str, list[float]] = {}
        for sample in record.samples:
            values.setdefault(f"{sample.metric}:{sample.unit}", []).append(sample.value)
        figures: dict[str, Any] = {name: math.fsum(found) / len(found) for name, found in values.items()}
        figures |= {f"{cell.metric}:{cell.unit}": cell.mean for cell in record.published}
        trouble: dict[str, Any] = {
            "trouble": str(record.status),
            "refused": record.refused,
            "failed": len(record.failures) - record.refused,
            "cause": record.failures[-1].message if record.failures else "",
        }
        # A field costs the server some 30 bytes a point; a text that is much the same every night is cheap.
        whole = replace(record, samples=(), state=None, raw=(), started_ns=0)
        short = replace(whole, failures=(), conditions={})
        fields = _fields(
            **self._of_run,
            record=_record(spool.line(whole)) or _record(spool.line(short)),
            **(trouble if record.failures or record.status != Status.MEASURED else {}),
            **figures,
        )
        return f"{CASES}{self._of_case(record, driver=record.driver)} {fields} {began}"

    def _samples(self, record: Result, began: int) -> list[str]:
        """A line for all metrics of a repetition. Its number as nanoseconds keeps those of one time apart;
        `reader` takes it off again.
        """
        head, started = f"{SAMPLES}{self._of_case(record)} ", f",started_ns={began}i "
        points: dict[tuple[int, int], str] = {}
        names: dict[tuple[str, str], str] = {}
        for one in record.samples:
            kind, at = (one.metric, one.unit), (one.time_ns, one.repetition)
            name = names.get(kind) or names.setdefault(kind, tag_value(":".join(kind)))
            error = "" if one.error is None else f",{name}:error={one.error!r}"
            figure = f"{name}={one.value!r}{error}"
            points[at] = f"{points[at]},{figure}" if at in points else figure
        return [
            f"{head}{numbers},repetition={n}i{started}{time_ns + n}"
            for (time_ns, n), numbers in points.items()
        ]

    def _boot(self, record: BootRecord) -> str:
        """A boot with the seconds since power-on of each mark."""
        failure, began = record.failure, next((m for m in record.marks if m.phase == "power_on"), None)
        since = {f"{m.phase}:s": (m.mono_ns - began.mono_ns) / 1e9 for m in record.marks if began}
        last = record.marks[-1].phase if record.marks else NONE
        fields = _fields(
            **self._of_run,
            failed=int(failure is not None),
            kernel_arguments=record.kernel_arguments or None,
            **({"failure": failure.message, "last_phase": last} if failure else {}),
            **since,
        )
        return f"{BOOTS}{_tags(**self._subject, goal=record.goal)} {fields} {record.started_ns}"

    def _verdict(self, record: VerdictRecord, tags: str) -> str:
        names = ("verdict", "reason", "baseline", "change")
        goal: dict[str, Any] = {}
        if record.goal or record.reached:
            missed = int(record.reached == GoalWord.MISSED)
            goal = {"goal": record.goal, "reached": record.reached, "owner": record.owner, "missed": missed}
        fields = _fields(**self._of_run, **{name: getattr(record, name) for name in names}, **goal)
        return f"{VERDICTS}{tags} {fields} {self._run.started_ns}"

    def _alarm(self, record: VerdictRecord, tags: str) -> str:
        """The alarm of a figure after this run; `loss` is what alerts ask, a share or in `unit`: 0
        once it is over.
        """
        alarm = record.alarm or MetricAlarm(AlarmState.WITHDRAWN, self._run.id)
        news = (
            alarm.opened == self._run.id
            if alarm.is_open
            else alarm.state in (AlarmState.ACCEPTED, AlarmState.RECOVERED)
        )
        mark = f"{alarm.state}: {record.key} {alarm.amount(alarm.size)}"
        fields = _fields(
            **self._of_run,
            state=str(alarm.state),
            since=alarm.since,
            nights=alarm.nights,
            change=alarm.amount(alarm.size),
            unit=alarm.unit,
            loss=abs(float(alarm.size)) if is_open_loss(record) else 0.0,
            cause=record.why,
            owner=record.owner,
            report_url=self._run.report,
            mark=html(mark) if news else None,
        )
        return f"{ALARMS}{tags} {fields} {self._run.started_ns}"


def _encoded(value: object) -> bytes:
    # Half a character, as a tool's JSON may have it, stays ASCII.
    return json.dumps(msgspec.to_builtins(value)).encode()
