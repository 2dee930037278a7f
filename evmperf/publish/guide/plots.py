"""Plots beside a guide: rates and latencies, as PNG files, because PDF builders do not take SVG."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evmperf.benchmarks.tables import latencies
from evmperf.guides.published.declared import tables
from evmperf.measure.runs.history import StoredRun
from evmperf.model.figures import Figure
from evmperf.publish.guide.layout import Figures

_RATES = ("MB/s", "MiB/s", "KiB/s", "kB/s", "Mbit/s")
_MOST_ROWS = 12
"""A table with more rows makes no readable plot."""
# Okabe and Ito's palette, which the colour-blind can tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def draw(guide: Path, figures: Figures, runs: Iterable[StoredRun]) -> dict[str, list[str]]:
    """Draw everything there is to draw into `<guide's name>-plots/`; names by benchmark, relative
    to the guide. Of each benchmark and board, the newest run that has its raw files gives the histogram.
    """
    folder = guide.parent / f"{guide.stem}-plots"
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[str]] = {}
    for table in tables().values():
        rows = [
            (f"{board} {key.case} {key.metric}".strip(), figure)
            for board, known in figures.items()
            for key, figure in known.items()
            if key.benchmark == table.benchmark and (figure.unit in _RATES or key.metric == "boot_time")
        ]
        if 0 < len(rows) <= _MOST_ROWS * len(figures):
            _bars(table.title, rows, folder / f"{table.benchmark}.png")
            drawn[table.benchmark] = [f"{folder.name}/{table.benchmark}.png"]
    newest = {
        (benchmark, entry.run.board): cpus
        for entry in runs
        if entry.folder
        for benchmark, cpus in latencies.histograms(entry.results(), entry.folder)
    }
    for (benchmark, board), cpus in newest.items():
        _histogram(cpus, board, folder / f"{benchmark}-{board}.png")
        drawn.setdefault(benchmark, []).append(f"{folder.name}/{benchmark}-{board}.png")
    return drawn


def _bars(title: str, rows: Sequence[tuple[str, Figure]], path: Path) -> None:
    """Means as bars with their bounds."""
    axes, save = _axes(1.2 + 0.25 * len(rows))
    names, figures = zip(*rows, strict=True)
    means = [figure.mean for figure in figures]
    low = [f.mean - (f.mean if f.low is None else f.low) for f in figures]
    high = [(f.mean if f.high is None else f.high) - f.mean for f in figures]
    axes.barh(range(len(rows)), means, xerr=[low, high], color=_COLOURS[0], ecolor=_COLOURS[1], capsize=2)
    axes.set(title=title, xlabel=figures[0].unit, yticks=range(len(rows)))
    axes.set_yticklabels(names, fontsize="small")
    axes.invert_yaxis()
    save(path)


def _histogram(cpus: Sequence[Mapping[int, int]], board: str, path: Path) -> None:
    """Latencies of each CPU, counts on a logarithmic axis, as rt-tests' users draw them."""
    axes, save = _axes(4.0)
    width = max(took for counts in cpus for took in counts) + 1
    for number, counts in enumerate(cpus):
        seen, colour = [counts.get(took, 0) for took in range(width)], _COLOURS[number % len(_COLOURS)]
        axes.stairs(seen, range(width + 1), color=colour, label=f"CPU {number}")
    axes.set(title=f"{board}: latency", xlabel="us", ylabel="wake-ups", yscale="log")
    axes.legend(frameon=False)
    save(path)


def _axes(height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure as Drawing  # noqa: PLC0415

    drawing = Drawing(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing.add_subplot(), lambda path: drawing.savefig(path, format="png", dpi=120)
