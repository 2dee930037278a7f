"""Plots for reports, as SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evmperf.boot import SPANS

# Okabe and Ito's palette, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")


def boot_phases(boots: Sequence[Mapping[str, float]], title: str, path: Path) -> None:
    """Draw each boot cycle as a bar of its phases, and its published boot time as a mark.

    `boots` holds seconds by metric name (see evmperf.boot.SPANS), one mapping a cycle.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 1.2 + 0.3 * len(boots)), layout="constrained")
    axes = figure.add_subplot()
    positions = range(1, len(boots) + 1)
    left = [0.0] * len(boots)
    for colour, (name, _, _, label, _) in zip(COLOURS, SPANS[1:], strict=True):
        widths = [boot.get(name, 0.0) for boot in boots]
        axes.barh(positions, widths, left=left, color=colour, label=label, edgecolor="white")
        left = [begin + width for begin, width in zip(left, widths, strict=True)]
    for position, boot, end in zip(positions, boots, left, strict=True):
        axes.annotate(f" {boot.get('boot_time', 0):.2f} s", (end, position), va="center")
    axes.set(title=title, xlabel="seconds since power-on", ylabel="cycle", yticks=list(positions))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    FigureCanvasSVG(figure)
    figure.savefig(path, format="svg")
