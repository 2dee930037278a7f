"""Style and scripts of a page: within it, or as files beside it.

A page that must open anywhere by itself has them `inline`; many pages that stand together share
the files that `write` puts beside them.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

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
    (folder / STYLE).write_text(_text(_STYLES), encoding="utf-8")
    (folder / SCRIPT).write_text(_text(_SCRIPTS), encoding="utf-8")
    (folder / LICENCE).write_text(_text(("uplot/LICENSE",)), encoding="utf-8")


@functools.cache
def _text(names: tuple[str, ...]) -> str:
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)
