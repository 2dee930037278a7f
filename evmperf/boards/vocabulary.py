"""The words of a board file, its features and its options, for checks, people and editors: the table of
docs/add-a-board.md, a JSON Schema.
"""

import ast
import functools
import inspect
import itertools
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from evmperf.boards import options, yamlfile
from evmperf.boards.options import MAPPINGS, Options, Section

FEATURES: Mapping[str, str] = yamlfile.own("boards/features.yaml")
"""The drivers that a board file may list, with their meanings: a misspelt one would skip its tests silently
for ever.
"""
ETHERNET = ("eth", "cpsw", "icssg")
"""Drivers of a port with a cable to the tester; `eth` is any, TI's have names and tables of their own."""
CABLED = (*ETHERNET, "ipsec")


class Known(msgspec.Struct, frozen=True):
    """One option as declared: what YAML calls its type, and what it means."""

    type: object
    """As declared, with its bounds."""
    yaml_type: str
    help: str
    choices: tuple[str, ...]
    default: str
    """As people would write it, "" for none."""


def sections() -> dict[str, type[Section]]:
    """The sections of the options, without MAPPINGS."""
    return {f.name: f.type for f in msgspec.structs.fields(Options) if f.name not in MAPPINGS}


def known_options(section: type[Section]) -> dict[str, Known]:
    """The options of a section."""
    meanings = _meanings_of(section)
    return {field.name: _option(field, meanings[field.name]) for field in msgspec.structs.fields(section)}


def _option(field: msgspec.structs.FieldInfo, meaning: str) -> Known:
    plain = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = "str" if choices else (get_origin(plain) or plain).__name__
    default = field.default if field.default not in (msgspec.NODEFAULT, "", 0, ()) else ""
    return Known(
        type=field.type,
        yaml_type="list" if kind == "tuple" else kind,
        help=meaning,
        choices=tuple(choice for choice in choices if choice),
        default=str(default),
    )


def _meanings_of(section: type[msgspec.Struct]) -> Mapping[str, str]:
    """What the options of a section mean, those of its base classes included."""
    return ChainMap(*(_meanings().get(declaring.__name__, {}) for declaring in section.__mro__))


@functools.cache
def _meanings() -> dict[str, dict[str, str]]:
    """What stands below the fields of options.py, by class and field, as the middle of a sentence."""
    classes = [node for node in ast.parse(inspect.getsource(options)).body if isinstance(node, ast.ClassDef)]
    return {declared.name: dict(_sentences(declared.body)) for declared in classes}


def _sentences(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for pair in itertools.pairwise(body):
        match pair:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                sentence = " ".join(text.split()).removesuffix(".")
                yield name, sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]


def table() -> str:
    """Markdown: a line an option, by section."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| section | option | meaning |"
    yield "|---|---|---|"
    for name, section in sections().items():
        about = (inspect.getdoc(section) or "").rstrip(".")
        yield f"| **`{name}`** | | {about} |"
        for key, option in known_options(section).items():
            choices = ", ".join(f"`{choice}`" for choice in option.choices)
            more = [f"one of {choices}"] if choices else []
            more += [f"default `{option.default}`"] if option.default else []
            tail = f" ({'; '.join(more)})" if more else ""
            yield f"| | `{key}` ({option.yaml_type}) | {option.help}{tail} |"


def schema() -> dict[str, object]:
    """The schema, draft 2020-12. Labgrid's classes are left to `evmperf board check`."""
    definitions = msgspec.json.schema(Options)["$defs"]
    declaring: list[type[msgspec.Struct]] = [*sections().values(), Options]
    for section in declaring:
        _tidy(definitions[section.__name__]["properties"], _meanings_of(section))
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


def _tidy(properties: dict[str, dict[str, Any]], meanings: Mapping[str, str]) -> None:
    """Add what options mean; remove what only our types have: "" for an option that is not given."""
    for name, option in properties.items():
        if name in meanings:
            option["description"] = meanings[name]
        if "$ref" in option or option.get("default") in ("", []):
            option.pop("default", None)
        if "" in option.get("enum", ()):
            option["enum"] = [choice for choice in option["enum"] if choice]
