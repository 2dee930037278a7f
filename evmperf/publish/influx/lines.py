"""Line protocol from the records of a run (docs/results.md has the schema and the reason of each field)."""

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
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
from evmperf.model.results import Result, Sample, SpoolRecord, Status
from evmperf.model.run import Run
from evmperf.model.verdict import GoalWord, Outcome

SCHEMA = 3
"""Version of what is stored. Its measurements have other names than those of 1 and 2: nothing is mixed."""
RUNS, CASES, SAMPLES, BOOTS, VERDICTS, ALARMS = "runs", "cases", "samples", "boots", "verdicts", "alarms"
SUBJECT = ("board", "kind", "lab", "os", "place", "profile")
"""Tags of all points: what has one series."""
NONE = "-"
"""A part of the subject that is not known: a tag cannot be empty, and is there in every point."""


@functools.lru_cache(maxsize=10_000)
def _tags(**tags: str) -> str:
    """Tags by name, which spares the server the sorting."""
    return "".join(f",{name}={tag_value(tags[name]) or NONE}" for name in sorted(tags))


def _value(value: object) -> str:
    """A field by its type: text quoted, whole numbers with their i."""
    if isinstance(value, str):
        return text_field(value)
    return f"{value}i" if isinstance(value, int) else repr(value)


def _record(tries: Iterable[str]) -> str | None:
    """The first JSON that would not be cut, without what it may hold as it is and line protocol not: DEL."""
    texts = (text.rstrip().replace("\x7f", "\\u007f") for text in tries)
    return next((text for text in texts if len(text.encode()) <= TEXT_LIMIT), None)


class RunLines:
    """Makes the lines of one run's records, and counts these for the run's own line."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._subject = {name: getattr(run, name) for name in SUBJECT}
        self._of_run = {"run": run.id, "release": run.release or UNKNOWN}
        self._verdicts: dict[Key, VerdictRecord] = {}
        counted = ("cases", "unmeasured", "boots", "failed_boots", "refused_outputs", "retried")
        self._sums: dict[str, float] = {**dict.fromkeys(counted, 0), "measured_s": 0.0, "tool_s": 0.0}

    @property
    def time_ns(self) -> int:
        """The time of the run's point. That of a guide is its place among releases, so that the last point of
        a series is that of the latest release.
        """
        if self._run.kind != GUIDE:
            return self._run.started_ns
        # Its first four numbers order it, each up to 999.
        numbers = zip(release_key(self._of_run["release"]), (3, 2, 1, 0), strict=False)
        return sum(min(number, 999) * 1000**place for number, place in numbers)

    def of(self, record: SpoolRecord) -> list[str]:
        """The lines of one record, in the order of the files; none for kinds that no query needs."""
        if isinstance(record, Result):
            began = record.started_ns or self.time_ns  # those of a guide have only their run's time
            found: dict[str, list[Sample]] = {}
            for one in record.samples:
                found.setdefault(f"{one.metric}:{one.unit}", []).append(one)
            return [self._case(record, began, found), *self._samples(record, began, found)]
        if isinstance(record, BootRecord):
            return [self._boot(record)]
        return self._verdict(record) if isinstance(record, VerdictRecord) else []

    def _head(self, measurement: str, **tags: str) -> str:
        return measurement + _tags(**self._subject, **tags)

    def _point(self, head: str, time_ns: int, fields: Mapping[str, object]) -> str:
        """A line with the run's fields and these, without None; names are as tags."""
        known = {name: value for name, value in {**self._of_run, **fields}.items() if value is not None}
        texts = (f"{tag_value(name)}={_value(value)}" for name, value in known.items())
        return f"{head} {','.join(texts)} {time_ns}"

    def run(self) -> str:
        """The line of the run itself, after those of all its records."""
        run, facts = self._run, self._run.facts
        outcomes = Counter(record.verdict for record in self._verdicts.values())
        ended, addresses = run.ended_ns or None, {**run.addresses, "report": run.report}
        decided = (Outcome.WORSE, Outcome.BETTER, Outcome.UNKNOWN, Outcome.SAME)
        # Half a character, as a tool's JSON may have it, stays ASCII.
        whole = run.to_dict()
        records = (json.dumps(msgspec.to_builtins(one)) for one in (whole, whole | {"facts": {}}))
        fields = {
            "schema": SCHEMA,
            "ended_ns": ended,
            "duration_s": (ended - run.started_ns) / 1e9 if ended else None,
            "outcome": run.outcome or "It has not ended, or was killed.",
            "power_cycles": self._sums["boots"] if facts.attempts is None else facts.attempts,
            **self._sums,
            "verdict": next((str(word) for word in decided if outcomes[word]), "not judged"),
            **{str(word).replace(" ", "_"): outcomes[word] for word in Outcome},
            **{f"{name}_url": addresses.get(name) or "" for name in ADDRESSES},
            "release_mark": html(self._of_run["release"]),  # Grafana shows marks as HTML
            "record": _record(records),
        }
        return self._point(self._head(RUNS), self.time_ns, fields)

    def _case(self, record: Result, began: int, found: dict[str, list[Sample]]) -> str:
        sums, refused, whole = self._sums, record.refused, record.status == Status.MEASURED
        sums["cases"] += 1
        sums["unmeasured"] += not whole
        sums["refused_outputs"] += refused
        # A refused step is done once more: what is whole in the end was retried with success.
        sums["retried"] += bool(refused and whole)
        sums["measured_s"] += record.duration_s
        sums["tool_s"] += record.tool_s
        # A field costs the server some 30 bytes a point; a text that is much the same every night is cheap.
        bare = replace(record, samples=(), state=None, raw=(), started_ns=0)
        tries = (bare, replace(bare, failures=(), conditions={}))
        fields: dict[str, Any] = {"record": _record(spool.line(one).decode() for one in tries)}
        if record.failures or not whole:
            fields["trouble"], fields["refused"] = str(record.status), refused
            fields["failed"] = len(record.failures) - refused
            fields["cause"] = record.failures[-1].message if record.failures else ""
        fields |= {name: fmean([one.value for one in samples]) for name, samples in found.items()}
        fields |= {f"{cell.metric}:{cell.unit}": cell.mean for cell in record.published}
        head = self._head(CASES, benchmark=record.benchmark, case=record.case, driver=record.driver)
        return self._point(head, began, fields)

    def _samples(self, record: Result, began: int, found: dict[str, list[Sample]]) -> list[str]:
        """A line for all metrics of a repetition. Its number as nanoseconds keeps those of one time apart;
        `reader` takes it off again.
        """
        head = self._head(SAMPLES, benchmark=record.benchmark, case=record.case)
        points: defaultdict[tuple[int, int], str] = defaultdict(str)
        for name, samples in found.items():
            text = tag_value(name)
            for one in samples:
                error = "" if one.error is None else f"{text}:error={one.error!r},"
                points[one.time_ns, one.repetition] += f"{text}={one.value!r},{error}"
        return [
            f"{head} {numbers}repetition={n}i,started_ns={began}i {time_ns + n}"
            for (time_ns, n), numbers in points.items()
        ]

    def _boot(self, record: BootRecord) -> str:
        """A boot with the seconds since power-on of each mark."""
        failure, began = record.failure, next((m for m in record.marks if m.phase == "power_on"), None)
        self._sums["boots"] += 1
        self._sums["failed_boots"] += failure is not None
        fields: dict[str, Any] = {"failed": int(failure is not None)}
        fields["kernel_arguments"] = record.kernel_arguments or None
        if failure:
            fields["failure"] = failure.message
            fields["last_phase"] = record.marks[-1].phase if record.marks else NONE
        if began:
            fields |= {f"{mark.phase}:s": (mark.mono_ns - began.mono_ns) / 1e9 for mark in record.marks}
        return self._point(self._head(BOOTS, goal=record.goal), record.started_ns, fields)

    def _verdict(self, record: VerdictRecord) -> list[str]:
        """A verdict, and the alarm of its figure."""
        before, self._verdicts[record.key] = self._verdicts.get(record.key), record
        figure = {"driver": record.driver, **record.key._asdict()}
        fields = {name: getattr(record, name) for name in ("verdict", "reason", "baseline", "change")}
        if record.goal or record.reached:
            fields |= {"goal": record.goal, "reached": record.reached, "owner": record.owner}
            fields["missed"] = int(record.reached == GoalWord.MISSED)
        points = {VERDICTS: fields}
        # A verdict without an alarm takes back that of one before it.
        if record.alarm or (before and before.alarm):
            points[ALARMS] = self._alarm(record)
        began = self._run.started_ns
        return [self._point(self._head(what, **figure), began, fields) for what, fields in points.items()]

    def _alarm(self, record: VerdictRecord) -> dict[str, Any]:
        """The alarm of a figure after this run; `loss` is what alerts ask, a share or in `unit`: 0
        once it is over.
        """
        alarm = record.alarm or MetricAlarm(AlarmState.WITHDRAWN, self._run.id)
        ended = alarm.state in (AlarmState.ACCEPTED, AlarmState.RECOVERED)
        begun = alarm.is_open and alarm.opened == self._run.id
        change = alarm.amount(alarm.size)
        return {
            **{name: getattr(alarm, name) for name in ("state", "since", "nights", "unit")},
            "change": change,
            "loss": abs(float(alarm.size)) if is_open_loss(record) else 0.0,
            "cause": record.why,
            "owner": record.owner,
            "report_url": self._run.report,
            "mark": html(f"{alarm.state}: {record.key} {change}") if begun or ended else None,
        }
