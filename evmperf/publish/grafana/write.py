"""Dashboards and alert rules of `dashboards.yaml` and `alerts.yaml`, and the files that they make.

Both have Grafana's own form, but for these words: `like` begins with a part of `parts.yaml`, `ask` is a
query, `queries` are a panel's, `columns` those of a table, `rows` a dashboard's panels below headings.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import yamlfile
from evmperf.boards.vocabulary import FEATURES
from evmperf.model.results import Metric
from evmperf.publish.grafana.query import asked

DASHBOARDS = "grafana"
"""The folder of dashboards that Grafana reads, and only these."""
ALERTS = "provisioning/alerting/evmperf.yaml"
_FULL_WIDTH = 24


def files() -> dict[str, str]:
    """Every generated file: its name below the folder, and its text."""
    description, alerts = (
        yamlfile.own("publish/grafana/dashboards.yaml"),
        yamlfile.own("publish/grafana/alerts.yaml"),
    )
    drivers = dict.fromkeys(sorted(benchmark.driver for benchmark in catalogue.benchmarks().values()))
    dashboards = [*description["dashboards"], *(_of_driver(driver, description) for driver in drivers)]
    parts = yamlfile.own("publish/grafana/parts.yaml")
    made = {ALERTS: yaml.safe_dump(_built(alerts, parts), sort_keys=False)}
    for dashboard in (_built(one, parts) for one in dashboards):
        file = f"{DASHBOARDS}/{dashboard['uid'].removeprefix('evmperf-')}.json"
        made[file] = json.dumps(dashboard, indent=1, sort_keys=True) + "\n"
    return made


def _of_driver(driver: str, description: Mapping[str, Any]) -> dict[str, Any]:
    """The dashboard of a driver: every metric of every benchmark over time."""
    rows = [
        {
            "title": benchmark.title,
            "panels": [_panel(description, benchmark, *one) for one in _metrics(benchmark)],
            "collapsed": number > 0,
        }
        for number, benchmark in enumerate(b for b in catalogue.benchmarks().values() if b.driver == driver)
    ]
    dashboard: dict[str, Any] = _filled(description["driver"], driver=driver, does=FEATURES[driver])
    return dashboard | {"rows": rows}


def _metrics(benchmark: Benchmark) -> Iterable[tuple[Metric, list[str]]]:
    """Each metric in each unit, with its cases in all profiles."""
    metrics: dict[tuple[str, str], tuple[Metric, list[str]]] = {}
    for profile in benchmark.profiles:
        for case in benchmark.cases(profile):
            for metric in benchmark.metrics_of(case):
                cases = metrics.setdefault((metric.name, metric.unit), (metric, []))[1]
                if case.label not in cases:
                    cases.append(case.label)
    return metrics.values()


def _panel(description: Mapping[str, Any], benchmark: Benchmark, metric: Metric, cases: Sequence[str]) -> Any:
    fields = description["panel"]["fieldConfig"]
    overrides = [
        _filled(one, case=case)
        for one in fields["overrides"]
        for case in (cases if "{case}" in str(one) else [""])
    ]
    panel = _filled(
        {name: value for name, value in description["panel"].items() if name != "fieldConfig"},
        title=benchmark.title,
        benchmark=benchmark.name,
        metric=metric.name,
        metric_title=metric.title,
        unit=metric.unit,
        way=description["ways"][metric.better],
    )
    unit = description["units"].get(metric.unit, f"suffix: {metric.unit}")
    return panel | {"fieldConfig": {"defaults": {"unit": unit}, "overrides": overrides}}


def _filled(value: Any, **words: str) -> Any:
    """Data with words in the place of their names in braces, but behind a $, which is Grafana's."""
    if isinstance(value, str):
        return re.sub(r"(?<!\$)\{(\w+)\}", lambda match: words.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [_filled(part, **words) for part in value]
    if isinstance(value, dict):
        return {name: _filled(part, **words) for name, part in value.items()}
    return value


def _built(value: Any, parts: Mapping[str, Any]) -> Any:
    """Grafana's form of our data; raises KeyError for a part or a step that is not there."""
    if isinstance(value, list):
        return [_built(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    value = dict(value)
    while like := value.pop("like", None):
        value = _merged(parts[like], value)
    steps, queries, rows = value.pop("ask", None), value.pop("queries", ()), value.pop("rows", ())
    columns = value.pop("columns", None)
    form = {name: _built(one, parts) for name, one in value.items()}
    if steps:
        form["query"] = asked(steps)
    if queries:
        letters = enumerate(queries, ord("A"))
        targets = [{"like": "target", "refId": chr(letter), "ask": steps} for letter, steps in letters]
        form["targets"] = _built(targets, parts)
    if columns:
        # Flux defines no order.
        options = {"indexByName": {n: at for at, n in enumerate(columns)}, "renameByName": columns}
        form["transformations"] = [{"id": "organize", "options": options}]
    if rows:
        form["panels"] = _laid_out(_built(rows, parts))
    return form


def _merged(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what is in `over`, mappings key by key; `like` is the lower one's."""
    both = {
        name: _merged(below[name], part) if isinstance(part, dict) and name in below else part
        for name, part in over.items()
    }
    return {**below, **both}


def _laid_out(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Panels under headings that fold, side by side as far as the width goes."""
    panels: list[dict[str, Any]] = []
    top = number = 0
    for row in rows:
        folded = row.get("collapsed", False)
        head = {
            "type": "row",
            "title": row["title"],
            "collapsed": folded,
            "gridPos": {"w": _FULL_WIDTH, "h": 1},
        }
        placed = [head, *row["panels"]]
        left = height = 0
        for panel in placed:
            place = panel["gridPos"]
            if left + place["w"] > _FULL_WIDTH:
                top, left, height = top + height, 0, 0
            number += 1
            panel |= {"id": number, "gridPos": place | {"x": left, "y": top}}
            left, height = left + place["w"], max(height, place["h"])
        top += height
        head["panels"] = placed[1:] if folded else []
        panels += [head] if folded else placed
    return panels
