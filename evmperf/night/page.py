"""The pages of a night, in the style of a run's report."""

from __future__ import annotations

from typing import Any

import jinja2

from evmperf.keeping.hold import clock

_TEMPLATES = jinja2.Environment(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.PackageLoader("evmperf.night", "."),
            jinja2.PackageLoader("evmperf.report", "."),  # its style
        ]
    ),
    autoescape=lambda name: bool(name and ".html" in name),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["clock"] = lambda seconds: clock(seconds) if seconds else ""


def render(template: str, **values: Any) -> str:
    """A page; raises jinja2's errors for a template that is wrong."""
    return _TEMPLATES.get_template(template).render(**values)
