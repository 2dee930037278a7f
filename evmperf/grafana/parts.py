"""Parts of the dashboards: the data source, variables, panels, and their JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from grafana_foundation_sdk.builders import (
    barchart,
    dashboard,
    histogram,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import common as builders
from grafana_foundation_sdk.cog import builder as cogbuilder
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model

from evmperf.grafana import query, words
from evmperf.grafana.query import Query
from evmperf.model.units import Unit
from evmperf.runs.measurements import ADDRESSES, RUN

SOURCE_UID = "evmperf-influxdb"
"""Id of the provisioned data source; alerts must name it, as they cannot use variables."""

SOURCE = model.DataSourceRef(type_val="influxdb", uid="${datasource}")

_FULL_WIDTH = 24

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


@dataclass
class _Target(cogbuilder.Builder[variants.Dataquery], variants.Dataquery):
    """A query of the InfluxDB data source; the SDK has no model of it."""

    query: Query
    ref_id: str

    def build(self) -> variants.Dataquery:
        return self

    def to_json(self) -> dict[str, object]:
        return {"refId": self.ref_id, "query": self.query.said(), "datasource": SOURCE}


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


_Panel = TypeVar("_Panel")


def _panel(
    kind: Callable[[], _Panel], title: str, about: str, *queries: Query, width: int, height: int
) -> _Panel:
    panel: Any = kind()
    panel.title(title).description(about).datasource(SOURCE).span(width).height(height)
    for number, asked in enumerate(queries):
        panel.with_target(_Target(asked, chr(ord("A") + number)))
    made: _Panel = panel
    return made


def over_time(
    title: str, about: str, *queries: Query, unit: str = "short", width: int = 12, height: int = 8
) -> timeseries.Panel:
    """Lines over time with a point at each run; `about` is the description."""
    panel = _panel(timeseries.Panel, title, about, *queries, width=width, height=height)
    return panel.unit(unit).show_points(common.VisibilityMode.ALWAYS).span_nulls(True).legend(_legend())


def _legend() -> Any:
    return (
        builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )


def stacked(panel: timeseries.Panel) -> timeseries.Panel:
    """The same as filled, stacked bars."""
    stacking = builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A")
    return panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(80).stacking(stacking)


def linked(panel: timeseries.Panel) -> timeseries.Panel:
    """Link each point to the report and the CI job of its run (`Query.addressed`)."""
    hidden = words.config({"custom.hideFrom": {"legend": True, "tooltip": True, "viz": True}})
    panel.override_by_regexp(f"/^({'|'.join(('run', *ADDRESSES))})$/", hidden)
    return panel.override_by_regexp("/ mean$/", words.config({"links": words.point_links()}))


def banded(panel: timeseries.Panel, cases: Sequence[str]) -> timeseries.Panel:
    """Fill between a case's lowest and highest value, and draw published figures dashed."""
    hidden = {"custom.hideFrom": {"legend": True, "tooltip": False, "viz": False}}
    pointless = {"custom.showPoints": "never"}
    panel.override_by_regexp("/ (low|high)$/", words.config({"custom.lineWidth": 0, **pointless, **hidden}))
    for case in cases:
        panel.override_by_name(f"{case} high", words.config({"custom.fillBelowTo": f"{case} low"}))
    dashed = {"custom.lineStyle": {"fill": "dash", "dash": [8, 6]}}
    return panel.override_by_regexp("/ published$/", words.config(dashed | pointless))


def single(
    title: str, about: str, asked: Query, *, trouble: str = "", unit: str = "short", width: int = 6
) -> stat.Panel:
    """One number, large; `trouble` is its colour from 1 on, if it should be zero."""
    panel = _panel(stat.Panel, title, about, asked, width=width, height=4)
    # Without options the SDK writes null, which Grafana's types do not allow.
    options = builders.ReduceDataOptions().calcs(["lastNotNull"])
    panel.unit(unit).reduce_options(options).graph_mode(common.BigValueGraphMode.NONE)
    steps = words.steps(trouble) if trouble else [model.Threshold(None, "text")]
    levels = dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
    panel.thresholds(levels)
    return panel.color_mode(common.BigValueColorMode.BACKGROUND) if trouble else panel


def states(
    title: str, about: str, asked: Query, width: int = _FULL_WIDTH, height: int = 8
) -> statetimeline.Panel:
    """The state of each column over time, as bars of words."""
    panel = _panel(statetimeline.Panel, title, about, asked, width=width, height=height)
    panel.mappings(words.mappings()).merge_values(True).show_value(common.VisibilityMode.AUTO)
    return panel.row_height(0.9).fill_opacity(70).line_width(0).legend(_legend())


def rows(title: str, about: str, asked: Query, columns: Sequence[str], height: int = 10) -> table.Panel:
    """A table over the whole width, with columns in that order (Flux defines none)."""
    panel = _panel(table.Panel, title, about, asked, width=_FULL_WIDTH, height=height)
    options = {
        "indexByName": {name: number for number, name in enumerate(columns)},
        "renameByName": {name: words.heading(name) for name in columns},
    }
    organised = model.DataTransformerConfig(id_val="organize", options=options)
    panel.show_header(True).with_transformation(organised)
    words.dress(panel)
    return panel


def bars(title: str, about: str, asked: Query, width: int = _FULL_WIDTH, height: int = 10) -> barchart.Panel:
    """Bars by the first text column."""
    return _panel(barchart.Panel, title, about, asked, width=width, height=height).legend(_legend())


def distribution(title: str, about: str, asked: Query, unit: str, width: int = 12) -> histogram.Panel:
    """How often each value occurred."""
    panel = _panel(histogram.Panel, title, about, asked, width=width, height=8)
    return panel.unit(unit).legend(_legend())


def variable(name: str, asked: Query, *, label: str = "", multi: bool = False) -> Any:
    """A variable with values from the data; `multi` allows several and starts with all."""
    choice = (
        dashboard.QueryVariable(name)
        .label(label or name.capitalize())
        .datasource(SOURCE)
        .query(asked.said())
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )
    if multi:
        everything = model.VariableOption(selected=True, text="All", value="$__all")
        choice.multi(True).include_all(True).current(everything)
    return choice


BOARD = ("board", query.values("board", measurement=RUN))


class Builder:
    """Builds a dashboard and writes its JSON."""

    def __init__(self, uid: str, title: str, description: str, since: str = "now-90d") -> None:
        self.uid = uid
        self._dashboard = (
            dashboard.Dashboard(title)
            .uid(uid)
            .description(description)
            .tags(["evmperf"])
            .time(since, "now")
            .timezone("browser")
            .readonly()
            .link(_links())
            .with_variable(dashboard.DatasourceVariable("datasource").label("Database").type("influxdb"))
        )
        self._annotations: list[dict[str, Any]] = []

    def choice(self, name: str, asked: Query, **options: Any) -> Self:
        """Add a variable."""
        self._dashboard.with_variable(variable(name, asked, **options))
        return self

    def kinds(self) -> Self:
        """Add the variable of the kind of run: nightly, desk, lava."""
        return self.choice(
            "kind", query.values("kind", query.MEASURED, measurement=RUN), label="Kind", multi=True
        )

    def row(self, title: str, *panels: Any, collapsed: bool = False) -> Self:
        """Add panels under a collapsible heading."""
        row = dashboard.Row(title).collapsed(collapsed)
        for panel in panels if collapsed else ():
            row.with_panel(panel)
        self._dashboard.with_row(row)
        for panel in () if collapsed else panels:
            self._dashboard.with_panel(panel)
        return self

    def marks(self) -> Self:
        """Mark the board's first run with each release, and in each lab."""
        # The SDK models annotation queries of Grafana's own store only.
        look = {"datasource": SOURCE, "enable": True, "hide": False, "iconColor": "purple"}
        for what in ("release", "lab"):
            text = f"{what}_text"
            runs = query.points(RUN, query.OF_BOARD, query.MEASURED, f"{text} != ''", always=True)
            asked = runs.first(text).select(time="time", text=text).said()
            self._annotations.append(
                look | {"name": f"New {what}", "target": {"refId": what, "query": asked}}
            )
        return self

    def json(self, language: str) -> str:
        """The file's text, with queries in one language."""
        built = json.loads(json.dumps(self._dashboard.build(), cls=JSONEncoder))
        built["annotations"] = {"list": self._annotations}
        built["templating"].setdefault("list", [])
        for choice in built["templating"]["list"]:
            # The SDK writes fields that only interval variables have.
            for name in [name for name in choice if name.startswith("auto")]:
                del choice[name]
        whole = json.dumps(spoken(_numbered(built), language), cls=JSONEncoder, indent=1, sort_keys=True)
        return whole + "\n"


def _links() -> Any:
    return (
        dashboard.DashboardLink("evmperf")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags(["evmperf"])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _numbered(built: dict[str, Any]) -> dict[str, Any]:
    """Give every panel an id, and options if the SDK wrote none."""
    number = 0
    for panel in built["panels"]:
        for one in (panel, *panel.get("panels", ())):
            number += 1
            one["id"] = number
            if one["type"] != "row" and one.get("options") is None:
                one["options"] = {}
            if one["type"] == "table":
                # The SDK writes fields that Grafana 12 and 13 dropped.
                one["options"].pop("footer", None)
    return built
