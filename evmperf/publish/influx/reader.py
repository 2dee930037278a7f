"""Earlier runs out of InfluxDB, as they went in."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from evmperf.measure.runs.history import GUIDE, StoredRun, by_age
from evmperf.measure.runs.spool import leave_out
from evmperf.model.results import Result, Sample, as_rows
from evmperf.model.run import Run
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.lines import CASES, RUNS, SAMPLES, SUBJECT, RunLines

_ROWS = """
from(bucket: bucket) |> range({span})
|> filter(fn: (r) => {which})
|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
|> map(fn: (r) => ({{r with time_ns: int(v: r._time)}}))
"""
_AFTER_NS = 3_600_000_000_000
"""Of a run's points after its end: the clock of a host may have been set back during the run."""


@dataclass(frozen=True)
class InfluxRuns:
    """The runs of one bucket; a RunSource."""

    store: Store

    def __str__(self) -> str:
        return str(self.store.config)

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See evmperf.measure.runs.history.RunSource; raw files and very long facts are not stored."""
        mine = f' and r.board == board and r.kind != "{GUIDE}"' if board is not None else ""
        flux = _ROWS.format(span="start: 0", which=f'r._measurement == "{RUNS}"{mine}')
        found = []
        for row in self.store.query(flux, board=board or ""):
            try:
                run = Run.from_dict(msgspec.json.decode(row["record"], type=dict[str, object]))
                read = partial(self._results, run, {name: row[name] for name in SUBJECT})
            except (msgspec.DecodeError, KeyError) as error:
                leave_out(f"{self}: {row['run']}: is damaged: {error}")
                continue
            found.append(StoredRun(run, read))
        return sorted(found, key=lambda entry: by_age(entry.run))

    def _results(self, run: Run, tags: dict[str, str]) -> list[Result]:
        """The results of a run with these tags. A sample knows the start of its case: this tells it from
        those of another run of the subject at the same time.
        """
        began = RunLines(run).time_ns
        ended = began if run.kind == GUIDE else max(began, run.ended_ns) + _AFTER_NS
        # Without an end the database would put the fields of all later runs side by side, too.
        end = f", stop: time(v: {ended + 1})" if run.ended_ns or run.kind == GUIDE else ""
        which = f'(r._measurement == "{CASES}" or r._measurement == "{SAMPLES}")'
        which += "".join(f" and r.{name} == {name}" for name in tags)
        flux = _ROWS.format(span=f"start: time(v: {began}){end}", which=which)
        samples = defaultdict[object, list[Sample]](list)
        cases = {}
        for row in self.store.query(flux, **tags):
            if row["_measurement"] == SAMPLES:
                samples[row["benchmark"], row["case"], row["started_ns"]] += _samples(row)
            elif row.get("run") == run.id:
                cases[row["benchmark"], row["case"], row["time_ns"]] = row
        found = []
        for key, row in cases.items():
            in_order = sorted(samples[key], key=lambda sample: (sample.time_ns, sample.metric))
            at_ns = 0 if run.kind == GUIDE else row["time_ns"]
            try:
                bare = msgspec.json.decode(row["record"], type=Result)
                result = replace(bare, samples=tuple(in_order), started_ns=at_ns)
                found.append(msgspec.convert(msgspec.to_builtins(result), Result))
            except (msgspec.DecodeError, KeyError) as error:
                leave_out(f"{self}: {run.id}: {row['benchmark']} {row['case']}: is damaged: {error}")
        return sorted(as_rows(lambda: found), key=lambda result: result.started_ns)


def _samples(row: dict[str, Any]) -> Iterator[Sample]:
    """The samples of a point."""
    number = row["repetition"]
    for name, value in row.items():
        metric, colon, unit = name.partition(":")
        if colon and ":" not in unit and value is not None:
            yield Sample(metric, value, unit, number, row["time_ns"] - number, row.get(f"{name}:error"))
