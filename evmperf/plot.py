"""Plots for reports, as SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evmperf.boot import SPANS

# Okabe and Ito's palette, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


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
    for colour, (name, _, _, label, _) in zip(COLOURS, SPANS[1:], strict=False):
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


def latency_histogram(cpus: Sequence[Mapping[int, int]], title: str, path: Path) -> None:
    """Draw how many wake-ups of each CPU had which latency, counts on a logarithmic scale.

    `cpus` holds counts by latency in microseconds, one mapping a CPU.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    width = max(latency for cpu in cpus for latency in cpu) + 1
    for number, cpu in enumerate(cpus):
        counts = [cpu.get(latency, 0) for latency in range(width)]
        colour = COLOURS[number % len(COLOURS)]
        axes.stairs(counts, range(width + 1), color=colour, label=f"CPU {number}")
    axes.set(title=title, xlabel="latency in microseconds", ylabel="wake-ups", yscale="log")
    axes.set_xlim(0, width)
    axes.legend(frameon=False)
    FigureCanvasSVG(figure)
    figure.savefig(path, format="svg")
