"""Parts of the dashboards: the data source, variables, panels, displayed words, and their JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from evmperf.grafana import query
from evmperf.grafana.query import Query
from evmperf.model.results import Status
from evmperf.model.units import Unit
from evmperf.model.verdict import GoalWord, Outcome
from evmperf.runs.history import ADDRESSES, RUN

SOURCE_UID = "evmperf-influxdb"
"""Id of the provisioned data source; alerts must name it, as they cannot use variables."""
_SOURCE = {"type": "influxdb", "uid": "${datasource}"}
_FULL_WIDTH = 24
_SCHEMA = 41
"""Grafana's, of a dashboard."""

UNITS: Mapping[str, str] = {
    Unit.SECOND: "s",
    Unit.MICROSECOND: "µs",
    Unit.NANOSECOND: "ns",
    Unit.MEGAHERTZ: "suffix: MHz",
    Unit.BYTE: "decbytes",
    Unit.KILOBYTE_PER_SECOND: "suffix: kB/s",
    Unit.MEGABYTE_PER_SECOND: "suffix: MB/s",
    Unit.KIBIBYTE_PER_SECOND: "suffix: KiB/s",
    Unit.MEBIBYTE_PER_SECOND: "suffix: MiB/s",
    Unit.PERCENT: "percent",
    Unit.BIT_PER_SECOND: "bps",
    Unit.VOLT: "volt",
    Unit.MILLIWATT: "mwatt",
    Unit.CELSIUS: "celsius",
}
"""Grafana's ids of our units; other units follow the number unchanged."""


def unit_id(unit: str) -> str:
    """Grafana's id of a unit."""
    return UNITS.get(unit, f"suffix: {unit}")


# Shape and word repeat the colour's meaning.
_LOOKS: Mapping[str, tuple[str, str]] = {
    Outcome.WORSE: ("▼ worse", "red"),
    Outcome.BETTER: ("▲ better", "green"),
    Outcome.UNKNOWN: ("~ cannot tell", "orange"),
    Outcome.SAME: ("= same", "text"),
    Outcome.NOT_JUDGED: ("○ not judged", "blue"),
    Outcome.NOT_COMPARABLE: ("? not comparable", "purple"),
    GoalWord.MISSED: ("▼ missed", "red"),
    GoalWord.MET: ("✓ met", "green"),
    Status.MEASURED: ("✓ measured", "green"),
    Status.PARTIAL: ("◐ partial", "orange"),
    Status.REFUSED: ("✗ refused", "orange"),
    Status.FAILED: ("✗ failed", "red"),
}
_WORDS = {
    "type": "value",
    "options": {
        str(word): {"text": text, "color": colour, "index": number}
        for number, (word, (text, colour)) in enumerate(_LOOKS.items())
    },
}
_TROUBLE = {"verdict_worse": "red", "failed_boots": "orange", "refused": "orange", "failed": "red"}
"""Counts that should be zero, and the colour of others."""
_HEADINGS = {"phase": "Last phase", "job": "CI job"}


def _heading(field: str) -> str:
    """A column's."""
    name = field.removeprefix("verdict_").replace("_", " ")
    return _HEADINGS.get(field, name[:1].upper() + name[1:])


def _thresholds(*colours: str) -> dict[str, Any]:
    """The colours of a count: the first of zero, the second from 1 on."""
    steps = [{"value": number or None, "color": colour} for number, colour in enumerate(colours)]
    return {"mode": "absolute", "steps": steps}


def spoken(value: Any, language: str) -> Any:
    """Parts of a dashboard with their queries in one language."""
    if isinstance(value, list | tuple):
        return [spoken(part, language) for part in value]
    if not isinstance(value, dict):
        return value
    if query.SQL in value:
        return value[language]
    found = {name: spoken(part, language) for name, part in value.items()}
    if language == query.FLUX:
        # Flux calls it so.
        for name in found.keys() & {"indexByName", "renameByName"}:
            found[name] = {"_time" if n == "time" else n: of for n, of in found[name].items()}
        return found
    asked = [one["query"]["series"] for one in value.get("targets", ())]
    if any(asked):
        # A line for each value of a column.
        options = {"fields": [max(asked)], "keepFields": False, "naming": {"asLabels": True}}
        found["transformations"] = [{"id": "partitionByValues", "options": options}]
    if isinstance(value.get("query"), dict) and "refId" in value:
        found |= {"rawSql": found.pop("query"), "rawQuery": True, "format": "table"}
    return found


Panel = dict[str, Any]
"""A panel as Grafana's JSON has it, with its queries in both languages."""

_LEGEND = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
    "tooltip": {"mode": "single", "sort": "asc"},
}


def _panel(kind: str, title: str, about: str, *queries: Query, width: int, height: int, **more: Any) -> Panel:
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": _SOURCE,
        "gridPos": {"w": width, "h": height},
        "targets": [
            {"refId": chr(ord("A") + number), "query": asked.said(), "datasource": _SOURCE}
            for number, asked in enumerate(queries)
        ],
        "transparent": False,
        "repeatDirection": "h",
        **more,
    }


def _fields(**defaults: Any) -> dict[str, Any]:
    return {"defaults": defaults, "overrides": []}


def _override(panel: Panel, matcher: str, what: str, values: Mapping[str, Any]) -> None:
    """Set some fields' values, by the paths of Grafana's settings."""
    properties = [{"id": path, "value": value} for path, value in values.items()]
    panel["fieldConfig"]["overrides"].append(
        {"matcher": {"id": matcher, "options": what}, "properties": properties}
    )


def over_time(
    title: str, about: str, *queries: Query, unit: str = "short", width: int = 12, height: int = 8
) -> Panel:
    """Lines over time with a point at each run; `about` is the description."""
    fields = _fields(unit=unit, custom={"showPoints": "always", "spanNulls": True})
    size = {"width": width, "height": height}
    return _panel("timeseries", title, about, *queries, **size, fieldConfig=fields, options=_LEGEND)


def stacked(panel: Panel) -> Panel:
    """The same as filled, stacked bars."""
    stacking = {"mode": "normal", "group": "A"}
    bars = {"drawStyle": "bars", "fillOpacity": 80, "stacking": stacking}
    panel["fieldConfig"]["defaults"]["custom"].update(bars)
    return panel


def linked(panel: Panel) -> Panel:
    """Link each point to the report and the CI job of its run (`Query.addressed`); the frame has the
    addresses.
    """
    hidden = {"custom.hideFrom": {"legend": True, "tooltip": True, "viz": True}}
    _override(panel, "byRegexp", f"/^({'|'.join(('run', *ADDRESSES))})$/", hidden)
    links = [
        {"title": f"{_heading(field)} of this run", "url": f"${{__data.fields.{field}}}", "targetBlank": True}
        for field in ADDRESSES
    ]
    _override(panel, "byRegexp", "/ mean$/", {"links": links})
    return panel


def banded(panel: Panel, cases: Sequence[str]) -> Panel:
    """Fill between a case's lowest and highest value, and draw published figures dashed."""
    hidden = {"custom.hideFrom": {"legend": True, "tooltip": False, "viz": False}}
    pointless = {"custom.showPoints": "never"}
    _override(panel, "byRegexp", "/ (low|high)$/", {"custom.lineWidth": 0, **pointless, **hidden})
    for case in cases:
        _override(panel, "byName", f"{case} high", {"custom.fillBelowTo": f"{case} low"})
    dashed = {"custom.lineStyle": {"fill": "dash", "dash": [8, 6]}}
    _override(panel, "byRegexp", "/ published$/", dashed | pointless)
    return panel


def single(title: str, about: str, asked: Query, *, trouble: str = "") -> Panel:
    """One number, large; `trouble` is its colour from 1 on, if it should be zero."""
    options = {
        "colorMode": "background" if trouble else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "showPercentChange": False,
        "textMode": "auto",
        "wideLayout": True,
    }
    fields = _fields(unit="short", thresholds=_thresholds(*(("green", trouble) if trouble else ("text",))))
    return _panel("stat", title, about, asked, width=6, height=4, fieldConfig=fields, options=options)


def states(title: str, about: str, asked: Query) -> Panel:
    """The state of each column over time, as bars of words."""
    shown = {"mergeValues": True, "showValue": "auto", "rowHeight": 0.9, "alignValue": "left", "perPage": 20}
    fields = _fields(mappings=[_WORDS], custom={"fillOpacity": 70, "lineWidth": 0})
    size = {"width": _FULL_WIDTH, "height": 8}
    return _panel("state-timeline", title, about, asked, **size, fieldConfig=fields, options=_LEGEND | shown)


def rows(title: str, about: str, asked: Query, columns: Sequence[str], height: int = 10) -> Panel:
    """A table over the whole width, with columns in that order (Flux defines none): headings, units,
    colours, and addresses as links.
    """
    order = {
        "indexByName": {name: number for number, name in enumerate(columns)},
        "renameByName": {name: _heading(name) for name in columns},
    }
    panel = _panel(
        "table",
        title,
        about,
        asked,
        width=_FULL_WIDTH,
        height=height,
        fieldConfig=_fields(),
        options={"cellHeight": "sm", "frameIndex": 0, "showHeader": True, "showTypeIcons": False},
        transformations=[{"id": "organize", "options": order}],
    )
    coloured = {"custom.cellOptions": {"type": "color-text"}}
    dress: dict[str, dict[str, Any]] = {
        field: {**coloured, "thresholds": _thresholds("text", colour)} for field, colour in _TROUBLE.items()
    }
    dress |= {field: {**coloured, "mappings": [_WORDS]} for field in ("verdict", "status")}
    dress["change"] = {"unit": "percentunit"}
    for field in ADDRESSES:
        link = {"title": _heading(field), "url": "${__value.raw}", "targetBlank": True}
        shown = {"type": "regex", "options": {"pattern": "^http.*", "result": {"text": "open"}}}
        dress[field] = {"links": [link], "mappings": [shown]}
    for field, values in dress.items():
        _override(panel, "byName", _heading(field), values)
    return panel


def bars(title: str, about: str, asked: Query) -> Panel:
    """Bars by the first text column."""
    options = {
        "barRadius": 0,
        "barWidth": 0.97,
        "fullHighlight": False,
        "groupWidth": 0.7,
        "orientation": "auto",
        "showValue": "auto",
        "stacking": "none",
        "xTickLabelMaxLength": 0,
        "xTickLabelRotation": 0,
        "xTickLabelSpacing": 0,
    }
    return _panel("barchart", title, about, asked, width=_FULL_WIDTH, height=10, options=_LEGEND | options)


def distribution(title: str, about: str, asked: Query, unit: str) -> Panel:
    """How often each value occurred."""
    options = _LEGEND | {"bucketCount": 30, "bucketOffset": 0}
    fields = _fields(unit=unit)
    return _panel("histogram", title, about, asked, width=12, height=8, fieldConfig=fields, options=options)


BOARD = ("board", query.values("board", measurement=RUN))


class Builder:
    """Builds a dashboard and writes its JSON."""

    def __init__(self, uid: str, title: str, description: str, since: str = "now-90d") -> None:
        self.uid = uid
        link: dict[str, Any] = {
            "title": "evmperf",
            "type": "dashboards",
            "tags": ["evmperf"],
            "icon": "",
            "tooltip": "",
        }
        link |= {"asDropdown": True, "includeVars": True, "keepTime": True, "targetBlank": False}
        self._variables: list[dict[str, Any]] = []
        self._marks: list[dict[str, Any]] = []
        self._panels: list[Panel] = []
        self._top = self._number = 0
        self._dashboard = {
            "uid": uid,
            "title": title,
            "description": description,
            "tags": ["evmperf"],
            "time": {"from": since, "to": "now"},
            "timezone": "browser",
            "editable": False,
            "fiscalYearStartMonth": 0,
            "graphTooltip": 0,
            "schemaVersion": _SCHEMA,
            "links": [link],
            "templating": {"list": self._variables},
            "annotations": {"list": self._marks},
            "panels": self._panels,
        }
        self._variable("datasource", "Database", type="datasource", query="influxdb")

    def _variable(self, name: str, label: str, *, multi: bool = False, **more: Any) -> None:
        flags = {"allowCustomValue": True, "includeAll": multi, "multi": multi, "skipUrlSync": False}
        self._variables.append({"name": name, "label": label, **flags, **more})

    def choice(self, name: str, asked: Query, *, label: str = "", multi: bool = False) -> Self:
        """Add a variable with values from the data; `multi` allows several and starts with all."""
        everything = {"current": {"selected": True, "text": "All", "value": "$__all"}} if multi else {}
        # It is asked again when the time range changes, and sorted by the alphabet.
        how = {"type": "query", "datasource": _SOURCE, "query": asked.said(), "refresh": 2, "sort": 1}
        self._variable(name, label or name.capitalize(), multi=multi, **how, **everything)
        return self

    def kinds(self) -> Self:
        """Add the variable of the kind of run: nightly, desk, lava."""
        return self.choice("kind", query.values("kind", query.MEASURED, measurement=RUN), multi=True)

    def row(self, title: str, *panels: Panel, collapsed: bool = False) -> Self:
        """Add panels under a collapsible heading, side by side as far as the width goes."""
        head: Panel = {"type": "row", "title": title, "collapsed": collapsed}
        left = height = 0
        for panel in (head, *panels):
            place = {"w": _FULL_WIDTH, "h": 1} if panel is head else panel["gridPos"]
            if left + place["w"] > _FULL_WIDTH:
                self._top, left, height = self._top + height, 0, 0
            self._number += 1
            panel |= {"id": self._number, "gridPos": place | {"x": left, "y": self._top}}
            left, height = left + place["w"], max(height, place["h"])
        self._top += height
        head["panels"] = list(panels) if collapsed else []
        self._panels += [head] if collapsed else [head, *panels]
        return self

    def marks(self) -> Self:
        """Mark the board's first run with each release, and in each lab."""
        look = {"datasource": _SOURCE, "enable": True, "hide": False, "iconColor": "purple"}
        for what in ("release", "lab"):
            text = f"{what}_text"
            runs = query.points(RUN, query.OF_BOARD, query.MEASURED, f"{text} != ''", always=True)
            asked = runs.first(text).select(time="time", text=text).said()
            self._marks.append(look | {"name": f"New {what}", "target": {"refId": what, "query": asked}})
        return self

    def json(self, language: str) -> str:
        """The file's text, with queries in one language."""
        return json.dumps(spoken(self._dashboard, language), indent=1, sort_keys=True) + "\n"
