"""The boots of a run as a picture, for places that show no page; it needs Pillow (the extra `guide`)."""

import textwrap
from pathlib import Path

from evmperf.measure.runs import spool
from evmperf.model.errors import UsageError
from evmperf.model.outlets import line
from evmperf.publish.pages import plots as drawing
from evmperf.publish.report import plots

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Okabe and Ito's, as the page has them."""
_INK, _LINE, _PAPER = "#1a1a1a", "#949494", "#ffffff"
_WIDTH, _LEFT, _RIGHT, _MARGIN = 1300, 110, 1200, 20
"""Pixels: of the picture, of both ends of the scale, and around all."""
_ROW, _BAR, _FONT = 24, 17, 15
_CAPTION_CHARS = 165


def write(file: Path, folder: Path, beside: Path | None = None) -> None:
    """Draw the boots of a run, and those of the run `beside` on the same scale, as PNG. Raises UsageError
    without boots, without Pillow, and for a file that cannot be written.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415  # an extra
    except ImportError:
        raise UsageError("--png needs Pillow: pip install 'evmperf[guide]'") from None
    others = [*spool.results_in(beside)] if beside else []
    charts = plots.boot_charts([*spool.results_in(folder)], others, beside.name if beside else "")
    if not charts:
        raise UsageError(f"{folder.name} has no boots to draw: measure them with pytest -k boot_time")
    captions = [textwrap.wrap(line(chart.caption), _CAPTION_CHARS) for chart in charts]
    rows = sum(len(c.bars) + len(lines) + 3 for c, lines in zip(charts, captions, strict=True))
    image = Image.new("RGB", (_WIDTH, rows * _ROW + 2 * _MARGIN), _PAPER)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(_FONT)
    y = _MARGIN

    def text(x: float, words: str, anchor: str = "la") -> None:
        pen.text((x, y), line(words), fill=_INK, font=font, anchor=anchor)

    for chart, lines in zip(charts, captions, strict=True):
        scale = (_RIGHT - _LEFT) / (chart.longest or 1.0)
        for words in lines:
            text(_MARGIN, words)
            y += _ROW
        x = float(_LEFT)
        for label, colour in zip(plots.PHASES, _COLOURS, strict=True):
            pen.rectangle((x, y, x + _BAR, y + _BAR), fill=colour)
            text(x + _BAR + 5, label)
            x += _BAR + 20 + pen.textlength(label, font=font)
        y += _ROW
        for bar in chart.bars:
            text(_LEFT - 8, bar.label, "ra")
            x = float(_LEFT)
            for width, colour in zip(bar.widths, _COLOURS, strict=False):
                if width > 0:
                    pen.rectangle((x, y, x + width * scale, y + _BAR), fill=colour)
                x += max(width, 0.0) * scale
            for _, at in bar.marks:
                pen.line((_LEFT + at * scale, y, _LEFT + at * scale, y + _BAR), fill=_INK, width=3)
            text(_LEFT + 5, bar.note)
            text(_RIGHT + 8, bar.text)
            y += _ROW
        pen.line((_LEFT, y, _RIGHT, y), fill=_LINE)
        for tick in drawing.ticks(chart.longest or 1.0):
            pen.line((_LEFT + tick * scale, y, _LEFT + tick * scale, y + 5), fill=_LINE)
            text(_LEFT + tick * scale + 3, f"{tick:.4g} s")
        y += 2 * _ROW
    try:
        image.save(file, "PNG")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None
