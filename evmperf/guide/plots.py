"""Plots beside a guide: boot time and throughput as bars with their bounds.

They are PNG files, because PDF builders do not take SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evmperf.figures import Figure, Key
from evmperf.guide.declared import Table, tables
from evmperf.guide.layout import Figures
from evmperf.plot import COLOURS
from evmperf.units import Unit

_RATES = {
    Unit.MEGABYTE_PER_SECOND, Unit.MEBIBYTE_PER_SECOND, Unit.KIBIBYTE_PER_SECOND,
    Unit.KILOBYTE_PER_SECOND, Unit.MEGABIT_PER_SECOND,
}  # fmt: skip
_MOST_ROWS = 12
"""A table with more rows makes no readable plot."""


def draw(guide: Path, figures: Figures) -> dict[str, list[str]]:
    """Draw everything there is to draw into `<guide's name>-plots/`; names by benchmark, relative
    to the guide.
    """
    folder = guide.parent / f"{guide.stem}-plots"
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[str]] = {}
    for table in tables().values():
        if _bars(table, figures, folder / f"{table.benchmark}.png"):
            drawn[table.benchmark] = [f"{folder.name}/{table.benchmark}.png"]
    return drawn


def _bars(table: Table, figures: Figures, path: Path) -> bool:
    """Bars of one table's rates or boot times; False if it has none, or too many."""
    rows = [
        (f"{board} {key.case} {key.metric}".strip(), figure)
        for board, known in figures.items()
        for key, figure in known.items()
        if key.benchmark == table.benchmark and _is_shown(key, figure)
    ]
    if not rows or len(rows) > _MOST_ROWS * len(figures):
        return False
    _draw_bars(table.title, rows, path)
    return True


def _is_shown(key: Key, figure: Figure) -> bool:
    return figure.unit in _RATES or key.metric == "boot_time"


def _draw_bars(title: str, rows: Sequence[tuple[str, Figure]], path: Path) -> None:
    axes, save = _axes(1.2 + 0.25 * len(rows))
    places = range(len(rows))
    means = [figure.mean for _, figure in rows]
    whiskers = [
        [figure.mean - (figure.mean if figure.low is None else figure.low) for _, figure in rows],
        [(figure.mean if figure.high is None else figure.high) - figure.mean for _, figure in rows],
    ]
    axes.barh(places, means, xerr=whiskers, color=COLOURS[0], ecolor=COLOURS[1], capsize=2)
    axes.set(title=title, xlabel=rows[0][1].unit, yticks=list(places))
    axes.set_yticklabels([name for name, _ in rows], fontsize="small")
    axes.invert_yaxis()
    save(path)


def _axes(height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure as Drawing  # noqa: PLC0415

    drawing = Drawing(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing.add_subplot(), lambda path: drawing.savefig(path, format="png", dpi=120)
