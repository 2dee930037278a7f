"""Pictures of the dashboards, drawn from what their queries return.

Not Grafana, which cannot be had where there is only a package registry: a page with the panels of
each dashboard in their places, each with the answer of the real InfluxDB to its real query. It
takes the settings that `evmperf push` takes, and variables as BOARD and NAME=VALUE.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evmperf.model.errors import UsageError
from evmperf.publish.grafana.query import FLUX
from evmperf.publish.grafana.write import DASHBOARDS, files
from evmperf.publish.influx import config as configs
from evmperf.publish.influx.config import Config
from evmperf.publish.pages import look, plots
from selftests.instruments import command
from selftests.support.browser import chromium
from selftests.support.grafana import choose, interpolated, panels
from selftests.support.influxd import flux

_ABOUT = {"", "result", "table"}
_TIME = {*_ABOUT, "_time"}
_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 16px; background: #f4f5f5; color: #1a1a1a;
  width: 1400px; max-width: none; --ink: #1a1a1a; --paper: #fff; --line: #949494; }
.grid { display: grid; grid-template-columns: repeat(24, 1fr); gap: 8px; }
.panel { background: #fff; border: 1px solid #ccc; padding: 8px; overflow: hidden; }
.panel h3 { font-size: 14px; margin: 0 0 6px; } h2 { grid-column: 1 / -1; margin: 12px 0 0; }
.number { font-size: 40px; } td, th { padding: 2px 8px; text-align: left; white-space: nowrap; }
"""


def page(dashboard: Mapping[str, Any], config: Config, values: Any, span: Any) -> str:
    """The HTML of one dashboard."""
    begin, end = span
    parts = [f"<h1>{html.escape(dashboard['title'])}</h1><p>"]
    parts.append(html.escape("; ".join(f"{n}: {', '.join(v)}" for n, v in values.items())))
    parts.append('</p><div class="grid">')
    for row in dashboard["panels"]:
        if row["type"] == "row":
            parts.append(f"<h2>{html.escape(row['title'])}</h2>")
        for panel in panels({"panels": [row]}):
            answers = [
                flux(config, interpolated(target["query"], config, values, begin, end))
                for target in panel["targets"]
            ]
            title = interpolated(panel["title"], config, values, begin, end)
            parts.append(
                f'<div class="panel" style="grid-column: span {panel["gridPos"]["w"]}">'
                f"<h3>{html.escape(title)}</h3>{_drawn(panel, answers, begin)}</div>"
            )
    ours = look.inline()
    return (
        f"<!DOCTYPE html><meta charset=utf-8>{ours.style}<style>{_STYLE}</style>"
        f"{''.join(parts)}</div>{ours.script}"
    )


def _drawn(panel: Mapping[str, Any], answers: Sequence[Any], begin: datetime) -> str:
    rows = [row for answer in answers for row in answer]
    if not rows:
        return "no data"
    fields = panel.get("fieldConfig", {}).get("defaults", {})
    unit = fields.get("unit", "").removeprefix("suffix: ")
    kinds = {"stat": _stat, "table": _table, "barchart": _bars, "histogram": _histogram}
    for change in panel.get("transformations", []):
        order = change["options"]["indexByName"]
        rows = [{name: row[name] for name in sorted(row, key=lambda n: order.get(n, 99))} for row in rows]
    if panel["type"] in kinds:
        return kinds[panel["type"]](rows, unit)
    if fields.get("custom", {}).get("stacking", {}).get("mode") == "normal":
        return _stacked(rows, unit)
    return plots.lines("", _series(rows, begin), ("hours", unit))


Rows = Sequence[Mapping[str, str]]


def _stat(rows: Rows, unit: str) -> str:
    (value,) = [value for name, value in rows[-1].items() if name not in _ABOUT]
    return f'<div class="number">{html.escape(value)}</div>'


def _bars(rows: Rows, unit: str) -> str:
    sides = [name for name in rows[0] if name not in {*_ABOUT, "case"}]
    bars = [
        plots.Bar(side, [float(row[side])], f"{row['case'].split(' (')[0]}: {float(row[side]):.2f}")
        for row in rows
        for side in sides
    ]
    return plots.bars("", ["mean"], bars, unit)


def _stacked(rows: Rows, unit: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row if name not in _TIME))
    times: dict[str, dict[str, str]] = {}
    for row in rows:
        times.setdefault(row["_time"], {}).update(row)
    bars = [
        plots.Bar(time[11:16], [float(row.get(name) or 0) for name in names], "")
        for time, row in sorted(times.items())
    ]
    return plots.bars("", names, bars, unit)


def _histogram(rows: Rows, unit: str) -> str:
    counts: dict[float, int] = {}
    (name,) = [name for name in rows[0] if name not in _TIME]
    for row in rows:
        value = round(float(row[name]), 1)
        counts[value] = counts.get(value, 0) + 1
    return plots.histogram("", [plots.Series(name, sorted(counts.items()))], unit)


def _series(rows: Rows, begin: datetime) -> list[plots.Series]:
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        hours = (datetime.fromisoformat(row["_time"]) - begin) / timedelta(hours=1)
        for name, value in row.items():
            if name not in _TIME and value:
                found.setdefault(name, []).append((round(hours, 3), float(value)))
    # Grafana fills between these and keeps them out of the legend.
    return [
        plots.Series(name, points) for name, points in found.items() if not name.endswith((" low", " high"))
    ]


def _table(rows: Rows, unit: str) -> str:
    names = [name for name in rows[0] if name not in _ABOUT]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = ["".join(f"<td>{html.escape(row[name][:60])}</td>" for name in names) for row in rows[:30]]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def main(words: Sequence[str] | None = None) -> None:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("dashboards", nargs="+", help="their files, e.g. boot.json")
    parser.add_argument("--to", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--hours", type=float, default=24, help="how far back (default: 24)")
    options = parser.parse_args(words)
    config = configs.load()
    if config is None:
        raise UsageError("InfluxDB is not configured; see `evmperf push --help`")
    end = datetime.now(UTC)
    begin = end - timedelta(hours=options.hours)
    given = {name: [value] for name, _, value in (text.partition("=") for text in options.set)}
    with chromium() as browser:
        for name in options.dashboards:
            dashboard = json.loads(files(FLUX)[f"{DASHBOARDS[FLUX]}/{name}"])
            values = choose(dashboard, config, given, begin, end)
            sheet = browser.new_page(viewport={"width": 1440, "height": 600})
            sheet.set_content(page(dashboard, config, values, (begin, end)))
            target = options.to / f"dashboard-{name.removesuffix('.json')}.png"
            sheet.screenshot(path=target, full_page=True)
            print(target)


if __name__ == "__main__":
    main()
