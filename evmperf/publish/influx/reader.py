"""Earlier runs out of InfluxDB, as they went in."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from evmperf.measure.runs.history import GUIDE, UNKNOWN, KeySamples, StoredRun, by_age
from evmperf.measure.runs.spool import leave_out
from evmperf.model.errors import UsageError
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.limits import REAL
from evmperf.model.results import Failure, Published, Result, Sample, Status
from evmperf.model.run import Run
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.lines import CASES, NONE, RUNS, SAMPLES, SUBJECT, RunLines

_ROWS = """
from(bucket: params.bucket) |> range({span})
|> filter(fn: (r) => {which})
|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
|> map(fn: (r) => ({{r with time_ns: int(v: r._time)}}))
"""
_OLDER = """
from(bucket: params.bucket) |> range(start: 0)
|> filter(fn: (r) => r._measurement == "run" and r._field == "schema") |> group() |> limit(n: 1)
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
        mine = f' and r.board == params.board and r.kind != "{GUIDE}"' if board is not None else ""
        rows = self._points("start: 0", f'r._measurement == "{RUNS}"{mine}', board=board or "")
        runs = sorted(self._sound(rows), key=by_age)
        if not runs and any(True for _ in self._store.query(_OLDER)):
            raise UsageError(
                f"{self}: holds runs as evmperf 0.2 stored them, which this one does not read: "
                f"send them again with `evmperf push`, best into a new bucket"
            )
        return [
            StoredRun(run, partial(self._results, run), narrow=partial(self._samples, run)) for run in runs
        ]

    def _sound(self, rows: Iterable[_Row]) -> Iterator[Run]:
        """The runs of points; those beyond the limits are named and left out."""
        for row in rows:
            try:
                yield Run.from_dict(_run(row).to_dict())
            except msgspec.ValidationError as error:
                leave_out(f"{self}: {row['run']}: is damaged: {error}")

    def _samples(self, run: Run, benchmark: str, case: str) -> Iterator[KeySamples]:
        which = "and r.benchmark == params.benchmark" + (" and r.case == params.case" if case else "")
        which += f' and (r._measurement == "{SAMPLES}" or r._field == "run")'
        for row, samples in self._whole(run, which, benchmark=benchmark, case=case):
            for sample in samples:
                yield Key(row["benchmark"], _text(row, "case"), sample.metric), sample.unit, (sample.value,)

    def _results(self, run: Run) -> list[Result]:
        found = sorted(self._whole(run), key=lambda one: one[0]["time_ns"])
        return [_result(run, row, samples) for row, samples in found]

    def _whole(self, run: Run, which: str = "", **values: str) -> Iterator[tuple[_Row, list[Sample]]]:
        """The cases of a run with their samples, which know the start of their case: it tells them from those
        of another run of the subject at the same time.
        """
        subject = {name: getattr(run, name) or NONE for name in SUBJECT}
        here = " and ".join(f"r.{name} == params.{name}" for name in SUBJECT)
        of_both = f'(r._measurement == "{CASES}" or r._measurement == "{SAMPLES}") and {here} {which}'
        began = RunLines(run).time_ns
        ended = began if run.kind == GUIDE else max(began, run.ended_ns) + _AFTER_NS
        # Without an end the database would put the fields of all later runs side by side, too.
        end = f", stop: time(v: {ended + 1})" if run.ended_ns or run.kind == GUIDE else ""
        cases: dict[tuple[str, str, int], tuple[_Row, list[Sample]]] = {}
        samples: list[_Row] = []
        for row in self._points(f"start: time(v: {began}){end}", of_both, **subject, **values):
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
        for metric, unit, name in _figures(row):
            if abs(row[name]) <= REAL:
                error = row.get(f"{name}:error")
                yield Sample(metric, row[name], unit, number, row["time_ns"] - number, error)
            else:
                key = Key(row["benchmark"], _text(row, "case"), metric)
                leave_out(f"{self}: {run.id}: {key}: is beyond {REAL:g}")

    def _points(self, span: str, which: str, **values: str) -> Iterator[_Row]:
        """Points with their fields side by side."""
        flux = _ROWS.format(span=span, which=which)
        return (row.values for row in self._store.query(flux, **values))


def _figures(row: _Row) -> Iterator[tuple[str, str, str]]:
    """Metric, unit and name of each figure of a point."""
    for name, value in row.items():
        metric, colon, unit = name.partition(":")
        if colon and ":" not in unit and value is not None:
            yield metric, unit, name


def _text(row: _Row, name: str) -> str:
    text: str | None = row.get(name)
    # The server's CSV ends every line like that, those within a text too.
    return "" if text in (None, NONE) else str(text).replace("\r\n", "\n")


def _structure(row: _Row, name: str, empty: Any) -> Any:
    text = row.get(name)
    return json.loads(text) if text else empty


def _run(row: _Row) -> Run:
    subject: dict[str, Any] = {name: _text(row, name) for name in SUBJECT}
    return Run(
        id=row["run"],
        **subject,
        started_ns=0 if row["kind"] == GUIDE else row["time_ns"],
        ended_ns=row.get("ended_ns") or 0,
        release=_text(row, "release").removeprefix(UNKNOWN),
        exit_status=row.get("exit_status"),
        outcome=_text(row, "outcome"),
        facts=Facts.from_dict(_structure(row, "facts", {})),
        addresses={
            name: address for name in ("job", "pipeline", "results") if (address := row.get(f"{name}_url"))
        },
    )


def _result(run: Run, row: _Row, samples: Iterable[Sample]) -> Result:
    published = _figures(row) if run.kind == GUIDE else ()
    return Result(
        benchmark=row["benchmark"],
        version=row["version"],
        driver=_text(row, "driver"),
        case=_text(row, "case"),
        profile=run.profile,
        params=_structure(row, "params", {}),
        tools=_structure(row, "tools", {}),
        conditions=_structure(row, "conditions", {}),
        status=Status(row["status"]),
        samples=tuple(sorted(samples, key=lambda sample: (sample.time_ns, sample.metric))),
        failures=msgspec.convert(_structure(row, "failures", []), tuple[Failure, ...]),
        started_ns=0 if run.kind == GUIDE else row["time_ns"],
        duration_s=row["duration_s"],
        tool_s=row["tool_s"],
        published=tuple(
            Published(
                metric,
                unit,
                row[name],
                row.get(f"{name}:low"),
                row.get(f"{name}:high"),
                _text(row, f"{name}:text"),
            )
            for metric, unit, name in published
        ),
    )
