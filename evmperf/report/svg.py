"""Small plots as SVG text, for a page that brings the style sheet (`report.html.j2`).

Series differ by pattern or marker and not by colour alone, and every plot says what it shows in a
title, as its table stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT, _TOP = 640, 64, 16, 30
_PLOT = _WIDTH - _LEFT - _RIGHT
_SERIES = 6
"""Styles that the page has (`s0` to `s5`): colours by Okabe and Ito, which the colour-blind can
tell apart, each with a pattern and a marker.
"""


@dataclass(frozen=True)
class Series:
    """A named line: points in data units, in the order of x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Bar:
    """A row of stacked widths, and the text behind it; without widths, the text alone."""

    label: str
    widths: Sequence[float]
    text: str


def stacked(title: str, parts: Sequence[str], bars: Sequence[Bar], axis: str) -> str:
    """Horizontal bars, each of the same parts, from 0; widths in the axis' unit."""
    rows, legend = 22, _legend(parts)
    height = _TOP + legend.height + rows * len(bars) + 40
    longest = max((sum(bar.widths) for bar in bars), default=0.0)
    scale = _Scale(0.0, longest * 1.15 or 1.0, _LEFT, _LEFT + _PLOT)
    body = [legend.text]
    top = _TOP + legend.height
    body += _vertical_grid(scale, top, top + rows * len(bars), axis)
    for number, bar in enumerate(bars):
        y, left = top + rows * number, 0.0
        body.append(f'<text class="e" x="{_LEFT - 6}" y="{y + 15}">{escape(bar.label)}</text>')
        for index, width in enumerate(bar.widths):
            x = scale(left)
            body.append(
                f'<rect class="b s{index % _SERIES}" x="{x:.1f}" y="{y + 3}" '
                f'width="{max(0.0, scale(left + width) - x):.1f}" height="{rows - 6}">'
                f"<title>{escape(parts[index])}: {width:.3f} {escape(axis)}</title></rect>"
            )
            left += width
        body.append(f'<text x="{scale(left) + 6:.1f}" y="{y + 15}">{escape(bar.text)}</text>')
    return _frame(title, height, body)


def lines(
    title: str, series: Sequence[Series], axes: tuple[str, str], *, sizes: bool = False
) -> str:
    """Lines with markers over x, y from 0; `axes` are the titles of x and y. With `sizes`, x is
    bytes, in powers of two.
    """
    points = [point for line in series for point in line.points]
    transform: Callable[[float], float] = (lambda x: math.log2(max(x, 1))) if sizes else float
    xs = [transform(x) for x, _ in points] or [0.0]
    legend = _legend([line.name for line in series])
    top, height = _TOP + legend.height, _TOP + legend.height + 260
    bottom = height - 46
    horizontal = _Scale(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1, _LEFT + 10,
                        _LEFT + _PLOT - 10)  # fmt: skip
    vertical = _Scale(0.0, max((y for _, y in points), default=1.0) * 1.08 or 1.0, bottom, top)
    body = [legend.text, *_horizontal_grid(vertical, axes[1])]
    marks = sorted(set(xs)) if sizes else _ticks(min(xs), max(xs))
    for mark in _thinned(marks, 10):
        text = _size(2**mark) if sizes else f"{mark:g}"
        body.append(f'<text class="m" x="{horizontal(mark):.1f}" y="{bottom + 18}">{text}</text>')
    body.append(
        f'<text class="m" x="{_LEFT + _PLOT / 2}" y="{bottom + 38}">{escape(axes[0])}</text>'
    )
    for index, line in enumerate(series):
        at = [(horizontal(transform(x)), vertical(y)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        body.append(f'<polyline class="l s{index % _SERIES}" points="{path}"/>')
        for (x, y), (raw_x, raw_y) in zip(at, line.points, strict=True):
            body.append(_marker(index, x, y, f"{line.name}: {raw_y:g} at {raw_x:g}"))
    return _frame(title, height, body)


def histogram(title: str, series: Sequence[Series], axis: str) -> str:
    """Counts on a logarithmic scale over values; one outline a series."""
    points = [point for line in series for point in line.points if point[1] > 0]
    if not points:
        return ""
    legend = _legend([line.name for line in series])
    top, height = _TOP + legend.height, _TOP + legend.height + 240
    bottom = height - 46
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    horizontal = _Scale(low, high if high > low else low + 1, _LEFT + 4, _LEFT + _PLOT - 4)
    decades = math.ceil(math.log10(max(y for _, y in points))) or 1
    vertical = _Scale(0.0, float(decades), bottom, top)
    body = [legend.text]
    for decade in range(decades + 1):
        y = vertical(decade)
        body.append(
            f'<line class="g" x1="{_LEFT}" x2="{_LEFT + _PLOT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        body.append(f'<text class="e" x="{_LEFT - 6}" y="{y + 5:.1f}">{10**decade:,}</text>')
    for mark in _ticks(low, high):
        body.append(f'<text class="m" x="{horizontal(mark):.1f}" y="{bottom + 18}">{mark:g}</text>')
    body.append(f'<text class="m" x="{_LEFT + _PLOT / 2}" y="{bottom + 38}">{escape(axis)}</text>')
    for index, line in enumerate(series):
        path = " ".join(
            f"{horizontal(x):.1f},{vertical(math.log10(y)):.1f}" for x, y in line.points if y > 0
        )
        body.append(f'<polyline class="l s{index % _SERIES}" points="{path}"/>')
    return _frame(title, height, body)


def pairs(title: str, a: Sequence[float], b: Sequence[float], axis: str) -> str:
    """Two rows of values, A above B, with a line between those that belong together."""
    every = [*a, *b]
    low, high = min(every), max(every)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    scale = _Scale(low - margin, high + margin, _LEFT, _LEFT + _PLOT)
    rows, bottom = (_TOP + 14, _TOP + 54), _TOP + 70
    body = _vertical_grid(scale, _TOP, bottom, axis)
    for one, other in zip(a, b, strict=True):
        body.append(
            f'<line class="pair" x1="{scale(one):.1f}" y1="{rows[0]}" '
            f'x2="{scale(other):.1f}" y2="{rows[1]}"/>'
        )
    for index, (name, values, y) in enumerate((("A", a, rows[0]), ("B", b, rows[1]))):
        body.append(f'<text class="e" x="{_LEFT - 12}" y="{y + 5}">{name}</text>')
        for block, value in enumerate(values, 1):
            tip = f"{name}, block {block}: {value:g} {axis}"
            body.append(_marker(index, scale(value), y, tip))
    return _frame(title, bottom + 42, body)


@dataclass(frozen=True)
class _Scale:
    """From data to the place on the page."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


@dataclass(frozen=True)
class _Legend:
    text: str
    height: int


def _legend(names: Sequence[str]) -> _Legend:
    """Names beside their patterns and markers, in as many lines as they need."""
    body, x, y = [], _LEFT, _TOP + 10
    for index, name in enumerate(names):
        width = 34 + round(7.4 * len(name))
        if x + width > _WIDTH and x > _LEFT:
            x, y = _LEFT, y + 20
        body.append(
            f'<rect class="b s{index % _SERIES}" x="{x}" y="{y - 11}" width="18" height="12"/>'
            + _marker(index, x + 9, y - 5, "")
            + f'<text x="{x + 24}" y="{y}">{escape(name)}</text>'
        )
        x += width
    return _Legend("".join(body), y - _TOP + 14 if names else 0)


def _marker(index: int, x: float, y: float, tip: str) -> str:
    """A small shape of the series' own."""
    style = index % _SERIES
    shapes = (
        f'<circle class="p s{style}" cx="{x:.1f}" cy="{y:.1f}" r="4">',
        f'<rect class="p s{style}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8">',
        f'<path class="p s{style}" d="M{x:.1f} {y - 5:.1f}l5 9h-10z">',
        f'<path class="p s{style}" d="M{x:.1f} {y - 5:.1f}l5 5-5 5-5-5z">',
        f'<path class="p s{style}" d="M{x:.1f} {y + 5:.1f}l5-9h-10z">',
        f'<path class="p s{style}" d="M{x - 5:.1f} {y - 2:.1f}h10v4h-10z">',
    )
    shape = shapes[style]
    end = f"</{shape[1 : shape.index(' ')]}>"
    return f"{shape}{f'<title>{escape(tip)}</title>' if tip else ''}{end}"


def _vertical_grid(scale: _Scale, top: float, bottom: float, axis: str) -> list[str]:
    body = []
    for mark in _ticks(scale.low, scale.high):
        x = scale(mark)
        body.append(
            f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
            f'<text class="m" x="{x:.1f}" y="{bottom + 16}">{mark:g}</text>'
        )
    middle = _LEFT + _PLOT / 2
    return [*body, f'<text class="m" x="{middle}" y="{bottom + 34}">{escape(axis)}</text>']


def _horizontal_grid(scale: _Scale, axis: str) -> list[str]:
    body = [f'<text x="4" y="20">{escape(axis)}</text>']
    for mark in _ticks(scale.low, scale.high):
        y = scale(mark)
        body.append(
            f'<line class="g" x1="{_LEFT}" x2="{_LEFT + _PLOT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="e" x="{_LEFT - 6}" y="{y + 5:.1f}">{mark:g}</text>'
        )
    return body


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two bounds, about six."""
    if not high > low:
        return [low]
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first = math.ceil(low / step)
    return [round(n * step, 12) for n in range(first, math.floor(high / step) + 1)]


def _thinned(marks: Sequence[float], most: int) -> Sequence[float]:
    return marks[:: math.ceil(len(marks) / most) or 1]


def _size(size: float) -> str:
    """Bytes as block sizes are written: powers of two with k, M, G."""
    for power, suffix in ((30, "G"), (20, "M"), (10, "k")):
        if size >= 1 << power:
            return f"{size / (1 << power):g}"[:5] + suffix
    return f"{size:g}"


def _frame(title: str, height: float, body: Sequence[str]) -> str:
    said = escape(title)
    return (
        f'<svg role="img" aria-label="{said}" viewBox="0 0 {_WIDTH} {height:.0f}">'
        f"<title>{said}</title>{''.join(body)}</svg>"
    )
