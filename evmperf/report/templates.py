"""The HTML templates of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


def template(name: str) -> Template:
    """A template of this folder: escapes what it is given, and fails for what it is not given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # slow

    environment = Environment(
        loader=PackageLoader("evmperf.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
