"""Earlier runs out of InfluxDB, as they went in."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from evmperf.measure.runs.history import GUIDE, RESULT, RUN, SAMPLE, UNKNOWN, KeySamples, StoredRun, by_age
from evmperf.measure.runs.spool import leave_out
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.limits import REAL
from evmperf.model.results import Failure, Published, Result, Sample, Status
from evmperf.model.run import Run
from evmperf.publish.influx.client import Store

_ROWS = """
from(bucket: params.bucket) |> range({span})
|> filter(fn: (r) => {which})
|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
{then}
|> map(fn: (r) => ({{r with time_ns: int(v: r._time)}}))
"""

_DAY_NS = 86_400_000_000_000
_Key = tuple[str, str, int]
"""Benchmark, case, and when the case began."""


class InfluxRuns:
    """The runs of one bucket; a RunSource."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __str__(self) -> str:
        return str(self._store.config)

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See evmperf.measure.runs.history.RunSource; raw files and very long facts are not stored."""
        mine = f' and r.board == params.board and r.kind != "{GUIDE}"' if board is not None else ""
        rows = self._points("start: 0", f'r._measurement == "{RUN}"{mine}', "|> group()", board=board or "")
        runs = sorted(self._sound(rows), key=by_age)
        return [
            StoredRun(run, partial(self._results, run), narrow=partial(self._samples, run)) for run in runs
        ]

    def _sound(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Run]:
        """The runs of points; those beyond the limits are named and left out."""
        for row in rows:
            try:
                yield Run.from_dict(_run(row).to_dict())
            except msgspec.ValidationError as error:
                leave_out(f"{self}: {row['run']}: is damaged: {error}")

    def _samples(self, run: Run, benchmark: str, case: str) -> Iterator[KeySamples]:
        which = "and r.benchmark == params.benchmark" + (" and r.case == params.case" if case else "")
        for row in self._numbers(run, which, benchmark=benchmark, case=case):
            key = Key(row["benchmark"], row.get("case") or "", row["metric"])
            yield key, row.get("unit") or "", (row["value"],)

    def _results(self, run: Run) -> list[Result]:
        rows = {_key(row, row["time_ns"]): row for row in self._rows(RESULT, run)}
        samples: dict[_Key, list[Sample]] = {}
        published: dict[_Key, list[Published]] = {}
        for row in self._numbers(run):
            key = _key(row, row["started_ns"])
            if row["kind"] == GUIDE:
                published.setdefault(key, []).append(_published(row))
            else:
                samples.setdefault(key, []).append(_sample(row))
        return [
            _result(
                row,
                tuple(sorted(samples.get(key, ()), key=lambda s: (s.time_ns, s.metric))),
                tuple(published.get(key, ())),
            )
            for key, row in sorted(rows.items(), key=lambda item: item[0][-1])
        ]

    def _numbers(self, run: Run, which: str = "", **values: str) -> Iterator[Mapping[str, Any]]:
        """The samples of a run; those beyond the limits are named and left out."""
        for row in self._rows(SAMPLE, run, which, **values):
            if abs(row["value"]) <= REAL:
                yield row
            else:
                key = Key(row["benchmark"], row.get("case") or "", row["metric"])
                leave_out(f"{self}: {run.id}: {key}: is beyond {REAL:g}")

    def _rows(
        self, measurement: str, run: Run, which: str = "", **values: str
    ) -> Iterator[Mapping[str, Any]]:
        which = f'r._measurement == "{measurement}" and r.board == params.board {which}'
        of_run = "|> filter(fn: (r) => r.run == params.run)"
        # Without an end the database would put the fields of all later runs side by side, too. The clock
        # of a host may have been set back during the run.
        last = max(run.started_ns, run.ended_ns) + _DAY_NS
        end = f", stop: time(v: {last})" if run.ended_ns else ""
        span = f"start: time(v: {run.started_ns}){end}"
        return self._points(span, which, of_run, board=run.board, run=run.id, **values)

    def _points(self, span: str, which: str, then: str, **values: str) -> Iterator[Mapping[str, Any]]:
        """Points with their fields side by side."""
        flux = _ROWS.format(span=span, which=which, then=then)
        return (row.values for row in self._store.query(flux, **values))


def _key(row: Mapping[str, Any], started_ns: int) -> _Key:
    return row["benchmark"], row.get("case") or "", started_ns


def _run(row: Mapping[str, Any]) -> Run:
    return Run(
        id=row["run"],
        board=row["board"],
        **_texts(row, "profile", "kind", "lab", "place", "os"),
        started_ns=row["time_ns"],
        ended_ns=row.get("ended_ns") or 0,
        release=(row.get("release") or "").removeprefix(UNKNOWN),
        exit_status=row.get("exit_status"),
        # The server's CSV ends every line like that, those within a text too.
        outcome=(row.get("outcome") or "").replace("\r\n", "\n"),
        facts=Facts.from_dict(_structure(row, "facts", {})),
        addresses={
            name: address for name in ("job", "pipeline", "results") if (address := row.get(f"{name}_url"))
        },
    )


def _result(row: Mapping[str, Any], samples: tuple[Sample, ...], published: tuple[Published, ...]) -> Result:
    return Result(
        benchmark=row["benchmark"],
        version=row["version"],
        **_texts(row, "driver", "case", "profile"),
        params=_structure(row, "params", {}),
        tools=_structure(row, "tools", {}),
        conditions=_structure(row, "conditions", {}),
        status=Status(row["status"]),
        samples=samples,
        failures=msgspec.convert(_structure(row, "failures", []), tuple[Failure, ...]),
        started_ns=row["time_ns"],
        duration_s=row["duration_s"],
        tool_s=row["tool_s"],
        published=published,
    )


def _published(row: Mapping[str, Any]) -> Published:
    text = row.get("text") or ""
    return Published(row["metric"], row["unit"], row["value"], row.get("low"), row.get("high"), text)


def _sample(row: Mapping[str, Any]) -> Sample:
    unit, number = row.get("unit") or "", row["repetition"]
    return Sample(row["metric"], row["value"], unit, number, row["time_ns"] - number, row.get("error"))


def _texts(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row.get(name) or "" for name in names}


def _structure(row: Mapping[str, Any], name: str, empty: Any) -> Any:
    text = row.get(name)
    return json.loads(text) if text else empty
