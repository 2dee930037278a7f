"""Displayed words of the database's values: names, colours, links."""

from collections.abc import Mapping
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
    options = {
        str(word): model.ValueMappingResult(text=text, color=colour, index=number)
        for number, (word, (text, colour)) in enumerate(_LOOKS.items())
    }
    return [model.ValueMap(options=options)]


def steps(colour: str, fine: str = "green") -> list[model.Threshold]:
    """Colours of a count that should be zero."""
    return [model.Threshold(None, fine), model.Threshold(1, colour)]


def dress(panel: Any) -> None:
    """Columns of a table: headings, units, colours, and addresses as links."""
    coloured = {"type": "color-text"}
    for field, colour in _TROUBLE.items():
        levels = {
            "mode": "absolute",
            "steps": [{"value": None, "color": "text"}, {"value": 1, "color": colour}],
        }
        panel.override_by_name(
            heading(field),
            [
                model.DynamicConfigValue("custom.cellOptions", coloured),
                model.DynamicConfigValue("thresholds", levels),
            ],
        )
    words = [{"type": "value", "options": _plain()}]
    for field in ("verdict", "status"):
        panel.override_by_name(
            heading(field),
            [
                model.DynamicConfigValue("custom.cellOptions", coloured),
                model.DynamicConfigValue("mappings", words),
            ],
        )
    panel.override_by_name(heading("change"), [model.DynamicConfigValue("unit", "percentunit")])
    for field in ADDRESSES:
        link = {"title": heading(field), "url": "${__value.raw}", "targetBlank": True}
        shown = {"type": "regex", "options": {"pattern": "^http.*", "result": {"text": "open"}}}
        panel.override_by_name(
            heading(field),
            [model.DynamicConfigValue("links", [link]), model.DynamicConfigValue("mappings", [shown])],
        )


def point_links() -> list[dict[str, Any]]:
    """Links from a point to its report and CI job; the frame has the addresses."""
    return [
        {"title": f"{heading(field)} of this run", "url": f"${{__data.fields.{field}}}", "targetBlank": True}
        for field in ADDRESSES
    ]


def _plain() -> dict[str, Any]:
    return {
        str(word): {"text": text, "color": colour, "index": number}
        for number, (word, (text, colour)) in enumerate(_LOOKS.items())
    }
