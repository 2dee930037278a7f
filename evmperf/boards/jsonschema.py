"""A JSON Schema of board files, with which editors complete and explain their words."""

from typing import Any

import msgspec

from evmperf.boards.options import MAPPINGS, Options
from evmperf.boards.vocabulary import FEATURES


def schema() -> dict[str, Any]:
    """The schema, draft 2020-12. Labgrid's classes are left to `evmperf board check`."""
    options = msgspec.json.schema(Options)
    definitions = {name: _tidy(found) for name, found in options["$defs"].items()}
    for name in MAPPINGS:
        definitions["Options"]["properties"][name]["propertyNames"] = {"type": "string"}
    named = {"type": "object", "description": "Labgrid's classes, each with its attributes"}
    target = {
        "type": "object",
        "required": ["options", "drivers"],
        "additionalProperties": False,
        "properties": {
            "features": {
                "type": "array",
                "description": "the drivers that the board has",
                "items": {"oneOf": [{"const": name, "description": text} for name, text in FEATURES.items()]},
            },
            "options": {"$ref": "#/$defs/Options"},
            "resources": {"anyOf": [named, {"type": "array"}]},
            "drivers": {"anyOf": [named, {"type": "array"}]},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Board file of evmperf",
        "type": "object",
        "required": ["targets"],
        "properties": {
            "imports": {"type": "array", "items": {"type": "string"}},
            "targets": {"type": "object", "required": ["main"], "properties": {"main": target}},
        },
        "$defs": definitions,
    }


def _tidy(struct: dict[str, Any]) -> dict[str, Any]:
    """A section without what only our types have: "" for an option that is not said."""
    for found in struct.get("properties", {}).values():
        if "$ref" in found or found.get("default") in ("", []):
            found.pop("default", None)
        if "" in found.get("enum", ()):
            found["enum"] = [choice for choice in found["enum"] if choice]
    return struct
