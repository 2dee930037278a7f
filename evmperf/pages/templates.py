"""Pages and files from the templates of all rooms."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from evmperf.model.change import Decision
from evmperf.model.outlets import address, markdown, plain
from evmperf.model.verdict import GoalWord, Outcome

if TYPE_CHECKING:
    from jinja2 import Environment

_TONES = {
    Outcome.WORSE: "bad",
    Outcome.BETTER: "good",
    Outcome.UNKNOWN: "unsure",
    Outcome.NOT_COMPARABLE: "unsure",
    Decision.UNKNOWN: "unsure",
    GoalWord.MISSED: "bad",
    GoalWord.MET: "good",
}


def tone(word: str) -> str:
    """The class of the style sheet for a verdict's or decision's word; "" for one without colour."""
    return next((name for known, name in _TONES.items() if known == word), "")


def render(template: str, **values: Any) -> str:
    """The text of a template, named as `ROOM/FILE`; raises jinja2's errors for one that is wrong."""
    return environment().get_template(template).render(**values)


@functools.cache
def environment() -> Environment:
    """The templates of all rooms, which may extend `base.html.j2` of this room: they escape what they
    are given, and fail for what they are not given. Their filters `markdown` and `address` are those of
    `evmperf.model.outlets`; `tone` is the class for a verdict.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Undefined  # noqa: PLC0415  # slow to import
    from markupsafe import Markup  # noqa: PLC0415

    whole = (Markup, Undefined, int, float)
    made = Environment(
        loader=ChoiceLoader([PackageLoader("evmperf", "."), PackageLoader("evmperf.pages", ".")]),
        autoescape=lambda name: bool(name and ".html" in name),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, whole) else plain(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"markdown": markdown, "address": address, "tone": tone}
    return made
