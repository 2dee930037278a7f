"""What all pages share: templates, style and scripts (`inline`, or in files that `write` puts beside many
pages), and the order of cases.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from evmperf.benchmarks import wording
from evmperf.model.exits import SIGNS
from evmperf.model.outlets import address, line, markdown, plain
from evmperf.model.stats import rounded
from evmperf.model.verdict import GoalWord, Outcome

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
_STYLES = ("uplot/uPlot.min.css", "style.css")
_SCRIPTS = ("uplot/uPlot.iife.min.js", "plots.js")
STYLE, SCRIPT, LICENCE = "evmperf.css", "plots.js", "uPlot-LICENSE.txt"
"""The files that `write` makes."""


@dataclass(frozen=True)
class Look:
    """What `base.html.j2` puts at the head and the end of a page."""

    style: Markup
    script: Markup


@functools.cache
def inline(*, plots: bool = True) -> Look:
    """All of it within the page; without `plots` no script."""
    script = _text(_SCRIPTS).replace("</script", "<\\/script") if plots else ""
    return Look(
        Markup("<style>{}</style>").format(Markup(_text(_STYLES))),
        Markup("<script>{}</script>").format(Markup(script)) if plots else Markup(""),
    )


@functools.cache
def linked(folder: str) -> Look:
    """The files of `write` by their folder's address relative to the page: "../static/"."""
    return Look(
        Markup('<link rel="stylesheet" href="{}{}">').format(folder, STYLE),
        Markup('<script src="{}{}"></script>').format(folder, SCRIPT),
    )


def write(folder: Path) -> None:
    """Write the shared files and uPlot's licence; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, parts in ((STYLE, _STYLES), (SCRIPT, _SCRIPTS), (LICENCE, ("uplot/LICENSE",))):
        (folder / name).write_text(_text(parts), encoding="utf-8")


@functools.cache
def _text(names: tuple[str, ...]) -> str:
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


_TONES = {
    "bad": (Outcome.WORSE, GoalWord.MISSED),
    "good": (Outcome.BETTER, GoalWord.MET),
    "unsure": (Outcome.UNKNOWN, Outcome.NOT_COMPARABLE),
}


def tone(word: str) -> str:
    """The class of the style sheet for a verdict's or decision's word; "" for one without colour."""
    return next((name for name, words in _TONES.items() if word in words), "")


def render(template: str, **values: object) -> str:
    """The text of a template, named as `ROOM/FILE`; raises jinja2's errors for one that is wrong."""
    return environment().get_template(template).render(**values)


@functools.cache
def environment() -> Environment:
    """The templates of all rooms, which may extend `base.html.j2` of this room: they escape what they
    are given, and fail for what they are not given. Their filters `markdown`, `address` and `line` are those
    of `evmperf.model.outlets`, `rounded` rounds as the guides do; `tone` is the class for a verdict, `signs`
    are those of a page's state.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Undefined  # noqa: PLC0415  # slow to import

    whole = (Markup, Undefined, int, float)
    made = Environment(
        loader=ChoiceLoader([PackageLoader("evmperf", "."), PackageLoader("evmperf.publish.pages", ".")]),
        autoescape=lambda name: bool(name and ".html" in name),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, whole) else plain(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"wording": wording, "signs": SIGNS}
    made.filters |= {
        "markdown": markdown,
        "address": address,
        "tone": tone,
        "line": lambda value: line(str(value)),
        "rounded": rounded,
    }
    return made


_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}
_PART = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)(?![a-zA-Z0-9])|(\D+|\d+)")


def natural(case: str) -> tuple[tuple[int, float, str], ...]:
    """What cases sort by: numbers by their value, 4k before 1m, 9 before 10."""
    return tuple(
        (0, float(number) * 1024 ** _POWERS[unit.lower()], "") if number else (1, 0.0, word)
        for number, unit, word in _PART.findall(case)
    )
