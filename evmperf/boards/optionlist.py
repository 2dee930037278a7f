"""What there is to say in a board file, read from the declaration of its options."""

from typing import Any, Literal, get_args, get_origin

import msgspec

from evmperf.boards.options import MAPPINGS, Options
from evmperf.boards.section import Section


class Known(msgspec.Struct, frozen=True):
    """One option as declared: what YAML calls its type, and what it means."""

    type: Any
    """As declared, with its bounds."""
    yaml_type: str
    help: str
    choices: tuple[str, ...]
    required: bool
    default: str
    """As people would write it, "" for none."""


def sections() -> dict[str, type[Section]]:
    """The sections there are, but MAPPINGS."""
    return {f.name: f.type for f in msgspec.structs.fields(Options) if f.name not in MAPPINGS}


def known(section: type[Section]) -> dict[str, Known]:
    """The options of a section."""
    return {field.name: _known(field) for field in msgspec.structs.fields(section)}


def _known(field: msgspec.structs.FieldInfo) -> Known:
    plain, *metas = get_args(field.type)
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = "str" if choices else (get_origin(plain) or plain).__name__
    default = field.default if field.default not in (msgspec.NODEFAULT, "", 0, ()) else ""
    return Known(
        type=field.type,
        yaml_type="list" if kind == "tuple" else kind,
        help=" ".join(meta.description for meta in metas if meta.description),
        choices=tuple(choice for choice in choices if choice),
        required=field.required,
        default=str(default),
    )
