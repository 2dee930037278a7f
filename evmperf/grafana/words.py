"""Displayed words of the database's values: names, colours, links."""

from collections.abc import Callable, Mapping
from typing import Any

from grafana_foundation_sdk.models import dashboard as model

from evmperf.model.results import Status
from evmperf.model.verdict import GoalWord, Outcome
from evmperf.runs.measurements import ADDRESSES

_HEADINGS = {"phase": "Last phase", "job": "CI job"}


def heading(field: str) -> str:
    """A column's."""
    name = field.removeprefix("verdict_").replace("_", " ")
    return _HEADINGS.get(field, name[:1].upper() + name[1:])


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
_TROUBLE = {"verdict_worse": "red", "failed_boots": "orange", "refused": "orange", "failed": "red"}
"""Counts that should be zero, and the colour of others."""


def mappings() -> list[Any]:
    """Displayed verdicts and statuses."""
    return [model.ValueMap(options=_looks(model.ValueMappingResult))]


def steps(colour: str, fine: str = "green") -> list[model.Threshold]:
    """Colours of a count that should be zero."""
    return [model.Threshold(None, fine), model.Threshold(1, colour)]


def config(values: Mapping[str, Any]) -> list[model.DynamicConfigValue]:
    """What an override sets, by the paths of Grafana's fields."""
    return [model.DynamicConfigValue(path, value) for path, value in values.items()]


def dress(panel: Any) -> None:
    """Columns of a table: headings, units, colours, and addresses as links."""
    coloured = {"custom.cellOptions": {"type": "color-text"}}
    columns: dict[str, dict[str, Any]] = {}
    for field, colour in _TROUBLE.items():
        levels = [{"value": None, "color": "text"}, {"value": 1, "color": colour}]
        columns[field] = {**coloured, "thresholds": {"mode": "absolute", "steps": levels}}
    for field in ("verdict", "status"):
        columns[field] = {**coloured, "mappings": [{"type": "value", "options": _looks(dict)}]}
    columns["change"] = {"unit": "percentunit"}
    for field in ADDRESSES:
        link = {"title": heading(field), "url": "${__value.raw}", "targetBlank": True}
        shown = {"type": "regex", "options": {"pattern": "^http.*", "result": {"text": "open"}}}
        columns[field] = {"links": [link], "mappings": [shown]}
    for field, values in columns.items():
        panel.override_by_name(heading(field), config(values))


def point_links() -> list[dict[str, Any]]:
    """Links from a point to its report and CI job; the frame has the addresses."""
    return [
        {"title": f"{heading(field)} of this run", "url": f"${{__data.fields.{field}}}", "targetBlank": True}
        for field in ADDRESSES
    ]


def _looks(kind: Callable[..., Any]) -> dict[str, Any]:
    return {
        str(word): kind(text=text, color=colour, index=number)
        for number, (word, (text, colour)) in enumerate(_LOOKS.items())
    }
