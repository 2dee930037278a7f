"""What a panel asks, said once, as Flux (InfluxDB 2) and as SQL (InfluxDB 3, whose engine is DataFusion).

Expressions are written in Python's syntax over the names of columns: `"failed > 0 or refused > 0"`.
`known(c, v)` is v where a column has nothing, `exists(c)` whether it has something, `one(v)` and
`several(v)` what is chosen of Grafana's variables, `begin()` and `end()` its range, `moment(c)` a
number of nanoseconds as a time, `age_h(c)` hours since. Columns are those of docs/results.md, `time`
among them, and `Value`, which is Grafana's word for the one figure of a row. Grafana puts in the
variables, and `v.timeRangeStart` or `$__timeFrom`.
"""

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from evmperf.runs.history import ADDRESSES, GUIDE, RUN, SAMPLE, VERDICT

FLUX, SQL = "flux", "sql"
_FLUX_NAMES = {"time": "_time", "Value": "_value"}
_TAGS = {"board", "kind", "lab", "os", "place", "profile", "release"}
_TAGS |= {"driver", "benchmark", "case", "metric", "goal", "phase"}
"""Columns that Flux filters before it puts fields side by side."""


def text(value: str, language: str = FLUX) -> str:
    """A text literal."""
    if language == SQL:
        return "'" + value.replace("'", "''") + "'"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@functools.cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _said(expression: str, language: str) -> str:
    return _expression(_parsed(expression), language)


_FORMS: Mapping[str, tuple[str, str]] = {
    "Eq": ("{} == {}", "{} = {}"),
    "NotEq": ("{} != {}", "{} <> {}"),
    "Gt": ("{} > {}", "{} > {}"),
    "In": ("contains(value: {}, set: {})", "{} IN {}"),
    "And": ("({} and {})", "({} AND {})"),
    "Or": ("({} or {})", "({} OR {})"),
    "Add": ("{} + {}", "{} || {}"),  # of texts
    "Sub": ("({} - {})", "({} - {})"),
    "Div": ("({} / {})", "({} / {})"),
    "IfExp": ("(if {} then {} else {})", "CASE WHEN {} THEN {} ELSE {} END"),
    "List": ("[{}, {}]", "({}, {})"),
    "one": ('"${{{}}}"', "${{{}:sqlstring}}"),
    "several": ("${{{}:json}}", "(${{{}:sqlstring}})"),
    "known": ("(if exists {0} then {0} else {1})", "coalesce({0}, {1})"),
    "exists": ("exists {}", "{} IS NOT NULL"),
    "begin": ("v.timeRangeStart", "$__timeFrom"),
    "end": ("v.timeRangeStop", "$__timeTo"),
    "moment": ("time(v: {})", "to_timestamp_nanos({})"),
    "number": ("float(v: {})", "CAST({} AS DOUBLE)"),
    "age_h": (
        "float(v: int(v: now()) - int(v: {})) / 3600000000000.0",
        "date_part('epoch', now() - {}) / 3600.0",
    ),
}


def _expression(node: Any, language: str) -> str:
    """An expression's text; raises KeyError for what is none."""
    if isinstance(node, ast.Name):
        return f'"{node.id}"' if language == SQL else f"r.{_FLUX_NAMES.get(node.id, node.id)}"
    if isinstance(node, ast.Constant):
        return text(node.value, language) if isinstance(node.value, str) else str(node.value)
    form: str
    parts: Any
    match node:
        case ast.Call(func=ast.Name("one" | "several" as which), args=[ast.Name(name)]):
            return _FORMS[which][language == SQL].format(name)
        case ast.Call(func=ast.Name(called)):
            form, parts = called, node.args
        case ast.Compare():
            form, parts = type(node.ops[0]).__name__, [node.left, *node.comparators]
        case ast.BoolOp():
            form, parts = type(node.op).__name__, node.values
        case ast.BinOp():
            form, parts = type(node.op).__name__, [node.left, node.right]
        case ast.IfExp():
            form, parts = "IfExp", [node.test, node.body, node.orelse]
        case _:
            form, parts = type(node).__name__, node.elts
    said = (_expression(part, language) for part in parts)
    return _FORMS[form][language == SQL].format(*said)


def _quoted(names: Sequence[str], language: str) -> str:
    if language == SQL:
        return ", ".join(f'"{name}"' for name in names)
    return "[" + ", ".join(text(_FLUX_NAMES.get(name, name)) for name in names) + "]"


@dataclass(frozen=True)
class Query:
    """A question in Flux (after `head`) and SQL; `series` is the column whose values are lines."""

    flux: str
    sql: str
    head: str = ""
    series: str = ""

    def said(self) -> dict[str, object]:
        """As a part of a dashboard, from which `Builder.json` takes one language."""
        return {FLUX: self.head + self.flux, SQL: self.sql, "series": self.series}

    def _then(self, flux: str, sql: str) -> Self:
        """What comes next; `{}` in SQL is what was before."""
        return replace(self, flux=f"{self.flux}\n{flux}", sql=sql.replace("{}", f"({self.sql})"))

    def where(self, condition: str) -> Self:
        """The rows that meet a condition."""
        return self._then(
            f"|> filter(fn: (r) => {_said(condition, FLUX)})",
            f"SELECT * FROM {{}} WHERE {_said(condition, SQL)}",
        )

    def select(self, **columns: str) -> Self:
        """Columns by name, each an expression."""
        return self._then(_mapped(columns), _selected(columns))

    def extend(self, **columns: str) -> Self:
        """All columns, and further ones."""
        return self._then(_mapped(columns, "r with "), _selected(columns, "*, "))

    def keep(self, *columns: str) -> Self:
        """These columns, as they are."""
        kept = f"|> keep(columns: {_quoted(columns, FLUX)})"
        return self._then(kept, f"SELECT {_quoted(columns, SQL)} FROM {{}}")

    def sort(self, *columns: str, desc: bool = False) -> Self:
        """In that order."""
        flux = f"|> sort(columns: {_quoted(columns, FLUX)}, desc: {str(desc).lower()})"
        order = ", ".join(f'"{column}"{" DESC" * desc}' for column in columns)
        return self._then(flux, f"SELECT * FROM {{}} ORDER BY {order}")

    def newest(self, count: int) -> Self:
        """The newest rows, so many at most, the newest first."""
        flux = f'|> sort(columns: ["_time"], desc: true) |> limit(n: {count})'
        return self._then(flux, f'SELECT * FROM {{}} ORDER BY "time" DESC LIMIT {count}')

    def last(self, *by: str, order: str = "time") -> Self:
        """The last row of each group."""
        place = f'row_number() OVER (PARTITION BY {_quoted(by, SQL)} ORDER BY "{order}" DESC) AS nth'
        flux = (
            f"|> group(columns: {_quoted(by, FLUX)}) |> sort(columns: {_quoted([order], FLUX)}) "
            "|> tail(n: 1) |> group()"
        )
        return self._then(flux, f"SELECT * EXCEPT (nth) FROM (SELECT *, {place} FROM {{}}) WHERE nth = 1")

    def first(self, *by: str) -> Self:
        """The first row of each group."""
        flux = f'|> group(columns: {_quoted(by, FLUX)}) |> sort(columns: ["_time"]) |> limit(n: 1) |> group()'
        names = _quoted(by, SQL)
        return self._then(flux, f"SELECT min(time) AS time, {names} FROM {{}} GROUP BY {names}")

    def count(self, condition: str, name: str) -> Self:
        """How many rows meet a condition, 0 included."""
        flux = (
            f"|> reduce(identity: {{{name}: 0}}, fn: (r, accumulator) => ({{{name}: "
            f"accumulator.{name} + (if {_said(condition, FLUX)} then 1 else 0)}}))"
        )
        return self._then(flux, f"SELECT count(*) AS {name} FROM {{}} WHERE {_said(condition, SQL)}")

    def mean(self, *by: str) -> Self:
        """The mean `value` of each group."""
        flux = f'|> group(columns: {_quoted(by, FLUX)}) |> mean(column: "value") |> group()'
        names = _quoted(by, SQL)
        return self._then(flux, f"SELECT {names}, avg(value) AS value FROM {{}} GROUP BY {names}")

    def per_run(self) -> Self:
        """Samples as one row a case and run: `mean`, `low`, `high` and the first `time`."""
        stats = "min(time) AS time, avg(value) AS mean, min(value) AS low, max(value) AS high"
        return self._then(_PER_RUN, f'SELECT "case", run, {stats} FROM {{}} GROUP BY "case", run')

    def rows(self, *selects: Mapping[str, str]) -> Self:
        """Each row as several, each with its own expressions by column."""
        # InfluxDB 2.7 loses a row of two streams with the same group key in one query of eight.
        streams = ", ".join(
            f'data {_mapped(one)} |> set(key: "part", value: "{number}") |> group(columns: ["part"])'
            for number, one in enumerate(selects)
        )
        several = " UNION ALL ".join(_selected(one).format("data") for one in selects)
        return replace(
            self,
            head=f"{self.head}data = {self.flux}\n",
            flux=f'union(tables: [{streams}]) |> group() |> drop(columns: ["part"])',
            sql=f"WITH data AS ({self.sql}) {several}",
        )

    def wide(self, series: str, *keys: str) -> Self:
        """`Value` by time (and `keys`), a line for each value of the column `series`."""
        rows = _quoted(["time", *keys], FLUX)
        flux = (
            f'|> pivot(rowKey: {rows}, columnKey: ["{series}"], valueColumn: "_value")\n'
            '|> sort(columns: ["_time"])'
        )
        return replace(self._then(flux, 'SELECT * FROM {} ORDER BY "time"'), series=series)

    def addressed(self, *runs: str) -> Self:
        """With the addresses of each row's `run`, as text; `runs` are conditions on the runs' points."""
        there = {"run": "run"} | {name: f"known({name}_url, '')" for name in ADDRESSES}
        named = points(RUN, *runs, always=True).select(**there)
        shown = ", ".join(f"{name}: r.{name}" for name in ADDRESSES)
        flux = (
            f"join.left(left: points, right: runs, on: (l, r) => l.run == r.run, "
            f'as: (l, r) => ({{l with {shown}}}))\n|> sort(columns: ["_time"])'
        )
        columns = ", ".join(f"addresses.{name}" for name in ADDRESSES)
        return replace(
            self,
            head=f'import "join"\n{self.head}points = {self.flux}\nruns = {named.flux}\n',
            flux=flux,
            sql=f"SELECT points.*, {columns} FROM ({self.sql}) AS points "
            f"LEFT JOIN ({named.sql}) AS addresses ON points.run = addresses.run ORDER BY points.time",
        )


def _mapped(columns: Mapping[str, str], also: str = "") -> str:
    shown = (f"{text(_FLUX_NAMES.get(n, n))}: {_said(e, FLUX)}" for n, e in columns.items())
    return f"|> map(fn: (r) => ({{{also}{', '.join(shown)}}}))"


def _selected(columns: Mapping[str, str], also: str = "") -> str:
    shown = (f'{_said(expression, SQL)} AS "{name}"' for name, expression in columns.items())
    return f"SELECT {also}{', '.join(shown)} FROM {{}}"


_PER_RUN = """
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


def _all(conditions: Sequence[str], language: str) -> str:
    said = [_said(condition, language) for condition in conditions]
    return (" and " if language == FLUX else " AND ").join(said)


def points(measurement: str, *conditions: str, always: bool = False) -> Query:
    """The points of a measurement, a row each; `always` disregards the time range."""
    tags = [condition for condition in conditions if _columns(_parsed(condition)) <= _TAGS]
    fields = [condition for condition in conditions if condition not in tags]
    span = "start: 0" if always else "start: v.timeRangeStart, stop: v.timeRangeStop"
    of_flux = " and ".join(filter(None, (f"r._measurement == {text(measurement)}", _all(tags, FLUX))))
    flux = (
        f"from(bucket: v.defaultBucket) |> range({span})\n|> filter(fn: (r) => {of_flux})\n"
        '|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> group()'
    )
    flux += f"\n|> filter(fn: (r) => {_all(fields, FLUX)})" if fields else ""
    in_range = "" if always else "time >= $__timeFrom AND time < $__timeTo"
    wanted = " AND ".join(filter(None, (in_range, _all(conditions, SQL))))
    return Query(flux, f'SELECT * FROM "{measurement}"' + (f" WHERE {wanted}" if wanted else ""))


def _columns(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id}
    parts = ast.iter_child_nodes(node)
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        parts = iter(() if node.func.id in ("one", "several") else node.args)
    return set().union(*map(_columns, parts))


def goals(*conditions: str) -> Query:
    """The last verdict on each figure with a goal."""
    verdicts = points(VERDICT, *conditions)
    return verdicts.last("board", "benchmark", "case", "metric").where("reached != ''")


def values(tag: str, *conditions: str, measurement: str = SAMPLE) -> Query:
    """The values of a tag, for a variable."""
    which = " and ".join(filter(None, (f"r._measurement == {text(measurement)}", _all(conditions, FLUX))))
    wanted = " AND ".join(filter(None, (f'"{tag}" IS NOT NULL', _all(conditions, SQL))))
    return Query(
        'import "influxdata/influxdb/schema"\n'
        f"schema.tagValues(bucket: v.defaultBucket, tag: {text(tag)}, predicate: (r) => {which}, start: 0)",
        f'SELECT DISTINCT "{tag}" FROM "{measurement}" WHERE {wanted}',
    )


def releases(*conditions: str) -> Query:
    """The releases of runs, for a variable."""
    return values("release", *conditions, measurement=RUN)


def beside(a: Query, b: Query, *keys: str) -> Query:
    """The rows that both have, by their `keys`, with the `value` of each as `a` and `b`."""
    sides = ", ".join(
        f'{side.flux}\n|> set(key: "side", value: "{name}") |> group(columns: ["side"])'
        for name, side in (("a", a), ("b", b))
    )
    flux = (
        f"union(tables: [{sides}]) |> group()\n"
        f'|> pivot(rowKey: {_quoted(keys, FLUX)}, columnKey: ["side"], valueColumn: "value")\n'
        "|> filter(fn: (r) => exists r.a and exists r.b)"
    )
    names = ", ".join(f'a."{key}"' for key in keys)
    same = " AND ".join(f'a."{key}" = b."{key}"' for key in keys)
    return Query(
        flux, f"SELECT {names}, a.value AS a, b.value AS b FROM ({a.sql}) AS a JOIN ({b.sql}) AS b ON {same}"
    )


MEASURED = f"kind != '{GUIDE}'"
PUBLISHED = f"kind == '{GUIDE}'"
OF_BOARD = "board == one(board)"
OF_PROFILE = "profile == one(profile)"
OF_RELEASES = "run_release in several(release)"
OF_KINDS = "kind in several(kind)"
OF_CASES = "case in several(case)"
