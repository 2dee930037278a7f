"""Flux queries as Grafana sends them.

Grafana puts in `v.timeRangeStart`, `v.timeRangeStop` and `v.defaultBucket` (of the data source)
and its variables: `${board}` as text, `${case:json}` as a list. The schema is in docs/results.md.
"""

from __future__ import annotations

from evmperf.runs.history import GUIDE


def text(value: str) -> str:
    """A text literal."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def points(measurement: str, *conditions: str, always: bool = False) -> str:
    """The points of a measurement, their fields side by side; `always` disregards the time range.

    Conditions are about tags, or about fields as well, which the server then finds slower.
    """
    span = "start: 0" if always else "start: v.timeRangeStart, stop: v.timeRangeStop"
    return "\n".join(
        [
            f"from(bucket: v.defaultBucket) |> range({span})",
            f"|> filter(fn: (r) => {_all(f'r._measurement == {text(measurement)}', *conditions)})",
            '|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
        ]
    )


def _all(*conditions: str) -> str:
    return " and ".join(condition for condition in conditions if condition)


MEASURED = f'r.kind != "{GUIDE}"'
PUBLISHED = f'r.kind == "{GUIDE}"'
OF_BOARD = 'r.board == "${board}"'
OF_PROFILE = 'r.profile == "${profile}"'
OF_RELEASES = 'contains(value: if exists r.release then r.release else "", set: ${release:json})'
OF_CASES = "contains(value: r.case, set: ${case:json})"


def tag_values(tag: str, *conditions: str, measurement: str = "sample") -> str:
    """The values that a tag has, for a variable."""
    which = _all(f"r._measurement == {text(measurement)}", *conditions)
    return (
        'import "influxdata/influxdb/schema"\n'
        f"schema.tagValues(bucket: v.defaultBucket, tag: {text(tag)}, "
        f"predicate: (r) => {which}, start: 0)"
    )


PER_RUN = """
|> group(columns: ["case", "run"])
|> reduce(
    identity: {n: 0.0, sum: 0.0, low: 0.0, high: 0.0, at: 0},
    fn: (r, accumulator) => {
        first = accumulator.n == 0.0
        lower = first or r.value < accumulator.low
        higher = first or r.value > accumulator.high
        earlier = first or int(v: r._time) < accumulator.at
        return {
            n: accumulator.n + 1.0,
            sum: accumulator.sum + r.value,
            low: if lower then r.value else accumulator.low,
            high: if higher then r.value else accumulator.high,
            at: if earlier then int(v: r._time) else accumulator.at,
        }
    },
)
|> map(fn: (r) => ({r with _time: time(v: r.at), mean: r.sum / r.n}))
|> group()
""".strip()
"""Behind the points of samples: one row a case and run, with mean, low, high, n."""


def bands(samples: str) -> str:
    """Mean, low and high of every case over time, a column each, named `CASE mean` and so on."""
    rows = ", ".join(
        "data |> map(fn: (r) => "
        f'({{_time: r._time, series: r.case + " {name}", _value: r.{name}}}))'
        for name in ("mean", "low", "high")
    )
    return f"data = {samples}\n{PER_RUN}\nunion(tables: [{rows}])\n{wide('series')}"


def wide(names: str) -> str:
    """One table with a column for each value of the column `names`, by time."""
    return (
        f'|> group() |> pivot(rowKey: ["_time"], columnKey: ["{names}"], valueColumn: "_value")\n'
        '|> sort(columns: ["_time"])'
    )


def baseline(samples: str) -> str:
    """The latest published figure of every case, as a level line named `CASE published`."""
    ends = ", ".join(
        f'data |> map(fn: (r) => ({{_time: {end}, series: r.case + " published", '
        "_value: r.value}))"
        for end in ("v.timeRangeStart", "v.timeRangeStop")
    )
    return (
        f'data = {samples}\n|> group(columns: ["case"]) |> sort(columns: ["release"])\n'
        f"|> tail(n: 1) |> group()\nunion(tables: [{ends}])\n{wide('series')}"
    )
