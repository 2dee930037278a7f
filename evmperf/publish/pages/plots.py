"""Plots as HTML, for a page with the look of this room (`look`).
uPlot draws curves when the page is opened, from JSON in an element (`plots.js`); bars are a table. Each
series has a colour of Okabe and Ito's palette, which the colour-blind can tell apart, and its own dash.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evmperf.model.outlets import plain
from evmperf.publish.pages import look


@dataclass(frozen=True)
class Series:
    """A named line by x; thin, without markers, in the colour of series number `of`, if that is given."""

    name: str
    points: Sequence[tuple[float, float]]
    of: int | None = None


@dataclass(frozen=True)
class Bar:
    """A row of stacked widths in seconds, and the text behind it. `marks` are named places beside the axis,
    `note` is what stands there instead of widths.
    """

    label: str
    widths: Sequence[float]
    text: str
    marks: Sequence[tuple[str, float]] = ()
    note: str = ""


def length(rows: Sequence[Bar]) -> float:
    """The longest of some bars."""
    return max((end for row in rows for end in (sum(row.widths), *(at for _, at in row.marks))), default=0.0)


def bars(label: str, parts: Sequence[str], rows: Sequence[Bar], longest: float) -> Markup:
    """Horizontal bars, each of the same parts, above an axis from 0 to `longest` seconds; `label` says what
    they show.
    """
    longest = longest or 1.0
    text = look.render(
        "publish/pages/bars.html.j2",
        label=label,
        parts=parts,
        bars=rows,
        ticks=ticks(longest),
        share=lambda width: f"{max(0.0, width) / longest:.2%}",
    )
    return Markup(text)


def ticks(longest: float) -> list[float]:
    """Round numbers from 0 to at most `longest`, six at most."""
    power = 10.0 ** math.floor(math.log10(longest / 5))
    step = next(power * n for n in (1, 2, 5, 10) if longest / (power * n) <= 5)
    return [n * step for n in range(int(longest / step) + 1)]


def lines(
    label: str, series: Sequence[Series], axes: tuple[str, str], *, sizes: bool = False, zero: bool = True
) -> Markup:
    """Lines with markers; `axes` are titles. `sizes`: x is bytes. Without `zero`, y begins at the values."""
    return _drawn(label, "lines", series, axes, sizes=sizes, zero=zero)


def histogram(label: str, series: Sequence[Series], axis: str) -> Markup:
    """Counts on a logarithmic scale over values; "" where nothing was counted."""
    counted = [Series(s.name, [p for p in s.points if p[1] > 0]) for s in series]
    if not any(s.points for s in counted):
        return Markup("")
    return _drawn(label, "histogram", counted, (axis, "count"))


def spark(values: Sequence[float | None]) -> Markup:
    """A series as a word-sized line, for a cell of a table."""
    text = json.dumps([None if v is None else float(f"{v:.4g}") for v in values])
    return Markup('<div class="spark" aria-hidden="true" data-spark="{}"></div>').format(text)


def _drawn(label: str, kind: str, series: Sequence[Series], axes: tuple[str, str], **more: object) -> Markup:
    lines = [
        {"name": one.name, "points": one.points} | ({} if one.of is None else {"of": one.of})
        for one in series
    ]
    data = {"kind": kind, "axes": axes, "series": lines, **more}
    element = Markup('<div class="plot" role="img" aria-label="{}" data-plot="{}"></div>')
    return element.format(plain(label), plain(json.dumps(data, separators=(",", ":"))))
