"""Flux queries as Grafana sends them.

Grafana expands `v.timeRangeStart`, `v.timeRangeStop` and `v.defaultBucket` (of the data source)
and its variables: `${board}` as text, `${case:json}` as a list. The schema is in docs/results.md.
"""

from collections.abc import Sequence

from evmperf.runs.history import GUIDE
from evmperf.runs.measurements import ADDRESSES, RUN, VERDICT


def text(value: str) -> str:
    """A text literal."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def points(measurement: str, *conditions: str, always: bool = False, fields: Sequence[str] = ()) -> str:
    """The points of a measurement, fields side by side; `conditions` are on tags, `fields` slower."""
    span = "start: 0" if always else "start: v.timeRangeStart, stop: v.timeRangeStop"
    return "\n".join(
        [
            f"from(bucket: v.defaultBucket) |> range({span})",
            f"|> filter(fn: (r) => {_all(f'r._measurement == {text(measurement)}', *conditions)})",
            '|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
            *(f"|> filter(fn: (r) => {condition})" for condition in fields),
        ]
    )


def _all(*conditions: str) -> str:
    return " and ".join(condition for condition in conditions if condition)


MEASURED = f'r.kind != "{GUIDE}"'
PUBLISHED = f'r.kind == "{GUIDE}"'
OF_BOARD = 'r.board == "${board}"'
OF_PROFILE = 'r.profile == "${profile}"'
OF_RELEASES = 'contains(value: if exists r.run_release then r.run_release else "", set: ${release:json})'
"""A condition on a field."""
OF_KINDS = "contains(value: r.kind, set: ${kind:json})"
OF_CASES = "contains(value: r.case, set: ${case:json})"


def last_goals(*conditions: str) -> str:
    """The last verdict on each figure with a goal, in one table."""
    return (
        f"{points(VERDICT, *conditions)}\n"
        '|> group(columns: ["board", "benchmark", "case", "metric"]) |> sort(columns: ["_time"]) '
        "|> tail(n: 1)\n|> group() |> filter(fn: (r) => exists r.reached)"
    )


def releases(*conditions: str) -> str:
    """The releases of runs, for a variable."""
    return tag_values("release", *conditions, measurement=RUN)


def tag_values(tag: str, *conditions: str, measurement: str = "sample") -> str:
    """The values of a tag, for a variable."""
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
"""Turns samples into one row per case and run, with mean, low, high, n."""


def bands(samples: str, *runs: str) -> str:
    """Mean, low and high of every case over time, in columns `CASE mean`, ..., with the run and its
    addresses; `runs` are conditions on the points of runs.
    """
    rows = ", ".join(
        "data |> map(fn: (r) => "
        f'({{_time: r._time, run: r.run, series: r.case + " {name}", _value: r.{name}}}))'
        for name in ("mean", "low", "high")
    )
    points = f"points = union(tables: [{rows}])\n{wide('series', 'run')}"
    addresses = ", ".join(f"{name}: r.{name}" for name in ADDRESSES)
    return (
        f'import "join"\ndata = {samples}\n{PER_RUN}\n{points}\n'
        f"runs = {addressed(*runs)}\n|> group()\n"
        "join.left(left: points, right: runs, on: (l, r) => l.run == r.run, "
        f"as: (l, r) => ({{l with {addresses}}}))\n"
        '|> sort(columns: ["_time"])'
    )


def addressed(*conditions: str) -> str:
    """Each run's id and its addresses, all as text."""
    shown = ", ".join(f'{name}: if exists r.{name}_url then r.{name}_url else ""' for name in ADDRESSES)
    return f"{points(RUN, *conditions, always=True)}\n|> map(fn: (r) => ({{run: r.run, {shown}}}))"


def wide(names: str, *keys: str) -> str:
    """One table with a column for each value of the column `names`, by time (and `keys`)."""
    rows = ", ".join(map(text, ("_time", *keys)))
    return (
        f'|> group() |> pivot(rowKey: [{rows}], columnKey: ["{names}"], valueColumn: "_value")\n'
        '|> sort(columns: ["_time"])'
    )


def baseline(samples: str) -> str:
    """The latest published figure of every case, as a level line named `CASE published`."""
    ends = ", ".join(
        f'data |> map(fn: (r) => ({{_time: {end}, series: r.case + " published", _value: r.value}}))'
        for end in ("v.timeRangeStart", "v.timeRangeStop")
    )
    return (
        f'data = {samples}\n|> group(columns: ["case"]) |> sort(columns: ["release"])\n'
        f"|> tail(n: 1) |> group()\nunion(tables: [{ends}])\n{wide('series')}"
    )
