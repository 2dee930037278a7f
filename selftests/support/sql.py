"""InfluxDB 3's part in a query: DataFusion over the points of an InfluxDB 2, with Grafana's
variables and macros put in as its data source does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import datafusion
import pyarrow as pa

from evmperf.publish.influx.client import Store
from evmperf.publish.influx.config import Config
from selftests.support.grafana import Values

MEASUREMENTS = ("sample", "result", "boot_mark", "run", "verdict")
_POINTS = """
from(bucket: params.bucket) |> range(start: 0) |> filter(fn: (r) => r._measurement == "{}")
|> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> group()
|> map(fn: (r) => ({{r with time: int(v: r._time)}}))
"""
_OWN = {"result", "table", "_time", "_start", "_stop", "_measurement"}


def engine(config: Config) -> datafusion.SessionContext:
    """A table for each measurement of a bucket, a row a point, a column for each tag and field."""
    context = datafusion.SessionContext()
    with Store(config, timeout_s=300) as store:
        for name in MEASUREMENTS:
            rows = [
                {k: v for k, v in row.values.items() if k not in _OWN}
                for row in store.query(_POINTS.format(name))
            ]
            if not rows:
                continue
            columns = {
                key: [row.get(key) for row in rows] for key in dict.fromkeys(k for r in rows for k in r)
            }
            arrays = {key: pa.array(column) for key, column in columns.items() if key != "time"}
            arrays["time"] = pa.array(columns["time"], pa.timestamp("ns"))
            context.register_record_batches(name, [pa.table(arrays).to_batches()])
    return context


def interpolated(query: str, values: Values, begin: datetime, end: datetime) -> str:
    """The text that Grafana sends; fails for a variable that the dashboard does not have."""

    def quoted(found: re.Match[str]) -> str:
        chosen = values[found[2]] if found[1] else values[found[2]][:1]
        return found[1] + ",".join("'" + value.replace("'", "''") + "'" for value in chosen)

    query = re.sub(r"(\(?)\$\{(\w+):sqlstring\}", quoted, query)
    for macro, moment in (("$__timeFrom", begin), ("$__timeTo", end)):
        query = query.replace(macro, f"cast('{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}' as timestamp)")
    assert "$" not in query, query
    return query


def sql(context: datafusion.SessionContext, query: str) -> list[dict[str, Any]]:
    """The rows of a query."""
    try:
        found = context.sql(query).to_arrow_table()
    except Exception as error:  # noqa: BLE001 -- DataFusion's own has no type
        raise AssertionError(f"{error}\n{query}") from None
    # Python's times have no nanoseconds.
    texts = [c.cast(pa.string()) if pa.types.is_timestamp(c.type) else c for c in found.columns]
    return pa.table(texts, names=found.column_names).to_pylist()


def lines(rows: list[dict[str, Any]], panel: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows as Grafana shows them: with a column for each line, where the panel makes lines of
    the values of a column.
    """
    split = [
        t["options"]["fields"] for t in panel.get("transformations", ()) if t["id"] == "partitionByValues"
    ]
    if not split:
        return rows
    ((name,),) = split
    wide: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        series, value = row.pop(name), row.pop("Value")
        wide.setdefault(tuple(row.values()), dict(row))[series] = value
    return list(wide.values())
