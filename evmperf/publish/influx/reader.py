"""Earlier runs out of InfluxDB, as they went in."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from evmperf.measure.runs.history import GUIDE, StoredRun, by_age
from evmperf.measure.runs.spool import leave_out
from evmperf.model.figures import Key
from evmperf.model.limits import REAL
from evmperf.model.results import Result, Sample, as_rows
from evmperf.model.run import Run
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.lines import CASES, NONE, RUNS, SAMPLES, SUBJECT, RunLines

_ROWS = """
from(bucket: bucket) |> range({span})
|> filter(fn: (r) => {which})
|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
|> map(fn: (r) => ({{r with time_ns: int(v: r._time)}}))
"""
_AFTER_NS = 3_600_000_000_000
"""Of a run's points after its end: the clock of a host may have been set back during the run."""
_Row = Mapping[str, Any]


class InfluxRuns:
    """The runs of one bucket; a RunSource."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __str__(self) -> str:
        return str(self._store.config)

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See evmperf.measure.runs.history.RunSource; raw files and very long facts are not stored."""
        mine = f' and r.board == board and r.kind != "{GUIDE}"' if board is not None else ""
        found = []
        for row in self._points("start: 0", f'r._measurement == "{RUNS}"{mine}', board=board or ""):
            try:
                run = Run.from_dict(msgspec.json.decode(row["record"], type=dict[str, object]))
                where = run, {name: row[name] for name in SUBJECT}
            except (msgspec.DecodeError, KeyError) as error:
                leave_out(f"{self}: {row['run']}: is damaged: {error}")
                continue
            found.append(StoredRun(run, partial(self._results, *where)))
        return sorted(found, key=lambda entry: by_age(entry.run))

    def _results(self, run: Run, subject: dict[str, str]) -> list[Result]:
        found = []
        for row, samples in self._whole(run, subject):
            try:
                result = msgspec.json.decode(row["record"], type=Result)
            except (msgspec.DecodeError, KeyError) as error:
                leave_out(f"{self}: {run.id}: {row['benchmark']} {_text(row, 'case')}: is damaged: {error}")
                continue
            in_order = sorted(samples, key=lambda sample: (sample.time_ns, sample.metric))
            began = 0 if run.kind == GUIDE else row["time_ns"]
            found.append(replace(result, samples=tuple(in_order), started_ns=began))
        return sorted(as_rows(lambda: found), key=lambda result: result.started_ns)

    def _whole(self, run: Run, subject: dict[str, str]) -> Iterator[tuple[_Row, list[Sample]]]:
        """The cases of a run with their samples, which know the start of their case: it tells them from those
        of another run of the subject at the same time.
        """
        here = " and ".join(f"r.{name} == {name}" for name in SUBJECT)
        of_both = f'(r._measurement == "{CASES}" or r._measurement == "{SAMPLES}") and {here}'
        began = RunLines(run).time_ns
        ended = began if run.kind == GUIDE else max(began, run.ended_ns) + _AFTER_NS
        # Without an end the database would put the fields of all later runs side by side, too.
        end = f", stop: time(v: {ended + 1})" if run.ended_ns or run.kind == GUIDE else ""
        cases: dict[tuple[str, str, int], tuple[_Row, list[Sample]]] = {}
        samples: list[_Row] = []
        for row in self._points(f"start: time(v: {began}){end}", of_both, **subject):
            if row["_measurement"] == SAMPLES:
                samples.append(row)
            elif row.get("run") == run.id:
                cases[row["benchmark"], row["case"], row["time_ns"]] = row, []
        for row in samples:
            if case := cases.get((row["benchmark"], row["case"], row["started_ns"])):
                case[1].extend(self._sound_samples(run, row))
        yield from cases.values()

    def _sound_samples(self, run: Run, row: _Row) -> Iterator[Sample]:
        """The samples of a point; those beyond the limits are named and left out."""
        number = row["repetition"]
        for name, value in row.items():
            metric, colon, unit = name.partition(":")
            if not colon or ":" in unit or value is None:
                continue
            if abs(value) <= REAL:
                error = row.get(f"{name}:error")
                yield Sample(metric, value, unit, number, row["time_ns"] - number, error)
            else:
                key = Key(row["benchmark"], _text(row, "case"), metric)
                leave_out(f"{self}: {run.id}: {key}: is beyond {REAL:g}")

    def _points(self, span: str, which: str, **values: str) -> Iterator[_Row]:
        """Points with their fields side by side."""
        flux = _ROWS.format(span=span, which=which)
        return (row.values for row in self._store.query(flux, **values))


def _text(row: _Row, name: str) -> str:
    return "" if row.get(name) in (None, NONE) else str(row[name])
