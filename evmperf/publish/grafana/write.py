"""Dashboards and alert rules of `dashboards.yaml` and `alerts.yaml`, and the files that they make.

Both have Grafana's own form, but for these words: `like` begins with a part of `parts.yaml`, `queries` are a
panel's, `columns` those of a table, `rows` a dashboard's panels below headings, `values` the tag whose values
a variable has; <<name>> is of `flux.yaml`.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from evmperf.boards import yamlfile

DASHBOARDS = "grafana"
"""The folder of dashboards that Grafana reads, and only these."""
ALERTS = "provisioning/alerting/evmperf.yaml"
_FULL_WIDTH = 24
_VALUES = '<<schema>>.tagValues(bucket: v.defaultBucket, tag: "{tag}", predicate: (r) => {where}, start: 0)'


def files() -> dict[str, str]:
    """Every generated file: its name below the folder, and its text."""
    dashboards = [_built(one) for one in _own("dashboards")]
    made = {f"{DASHBOARDS}/{d['uid'].removeprefix('evmperf-')}.json": d for d in dashboards}
    panels = {panel["title"]: str(panel["id"]) for panel in dashboards[0]["panels"]}
    alerts = _built(_own("alerts"))
    for rule in alerts["groups"][0]["rules"]:
        notes = rule["annotations"]
        notes["__panelId__"] = panels[notes["__panelId__"].removeprefix("panel: ")]
    texts = {name: json.dumps(one, indent=1, sort_keys=True) + "\n" for name, one in made.items()}
    return texts | {ALERTS: yaml.safe_dump(alerts, sort_keys=False, width=1000)}


@functools.cache
def _own(name: str) -> Any:
    return yamlfile.own(f"publish/grafana/{name}.yaml")


def _built(value: Any) -> Any:
    """Grafana's form of our data; raises KeyError for a part or a text that is not there."""
    if isinstance(value, str):
        return re.sub(r"<<(\w+)>>", lambda match: str(_built(_own("flux")[match[1]])), value)
    if isinstance(value, list):
        return [_built(one) for one in value]
    if not isinstance(value, dict):
        return value
    value = dict(value)
    while like := value.pop("like", None):
        value = _merged(_own("parts")[like], value)
    if tag := value.pop("values", ""):
        value["query"] = _VALUES.format(tag=tag, where=value.pop("where"))
    queries, rows, columns = value.pop("queries", ()), value.pop("rows", ()), value.pop("columns", None)
    form = {name: _built(one) for name, one in value.items()}
    if columns:
        names = ", ".join(f'"{name}"' for name in columns)
        queries = [f"{query}\n|> keep(columns: [{names}])" for query in queries]
    if queries:
        letters = enumerate(queries, ord("A"))
        form["targets"] = [_built({"like": "target", "refId": chr(at), "query": one}) for at, one in letters]
    if columns:
        # Flux defines no order.
        options = {"indexByName": {n: at for at, n in enumerate(columns)}, "renameByName": columns}
        form["transformations"] = [{"id": "organize", "options": options}]
    if rows:
        form["panels"] = _laid_out(_built(rows))
    return form


def _merged(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what is in `over`, mappings key by key; `like` is the lower one's."""
    both = {
        name: _merged(below[name], part) if isinstance(part, dict) and name in below else part
        for name, part in over.items()
    }
    return {**below, **both}


def _laid_out(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Panels under headings, side by side as far as the width goes."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        head = {name: part for name, part in row.items() if name != "panels"}
        placed = [
            {"type": "row", "collapsed": False, "gridPos": {"w": _FULL_WIDTH, "h": 1}, **head},
            *row["panels"],
        ]
        left = height = 0
        for panel in placed:
            place = panel["gridPos"]
            if left + place["w"] > _FULL_WIDTH:
                top, left, height = top + height, 0, 0
            panels.append({**panel, "id": len(panels) + 1, "gridPos": place | {"x": left, "y": top}})
            left, height = left + place["w"], max(height, place["h"])
        top += height
    return panels
