"""Is a figure beside one other figure? A tolerance from what is known of the metric's spread."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evmperf.model.figures import Figure, Key
from evmperf.model.units import Unit
from evmperf.published import artefacts
from evmperf.regress.nights import Night

_RANGE_SDS = 3.0
"""Width of a published min to max in standard deviations: 2.3 for 5 runs, 3.3 for 12, 3.7 for 20
(L. H. C. Tippett, Biometrika 17, 1925); how many runs there were is not published.
"""
_FLOOR = 0.005
"""No metric repeats better than to half a percent from run to run."""

_LEAST = 0.01
_LEAST_LOAD = 0.10
"""Least relative spread taken for a metric whose spread on this board is not known: loads are a
few percent of a short time, and jump.
"""
_FEWEST = 5
"""Runs below which their spread says nothing."""

_FEW_WIDENS = 5.0
"""Student's quantiles over the normal's at the p-values of many metrics, about: 1.25 of the spread
with 20 runs, 1.6 with eight.
"""

Spreads = Mapping[tuple[str, ...], float]
"""Usual relative standard deviation, by benchmark, case and metric, and by benchmark and metric."""


@dataclass(frozen=True)
class Beside:
    """How far a figure is from another: `p` for "nothing changed", `spread` of the difference
    (standard deviation, in the figures' unit).
    """

    p: float
    spread: float


def compare(figure: Figure, baseline: Figure, spreads: Spreads) -> Beside:
    """Compare two measured figures of one metric; evmperf.regress.printed has published ones."""
    centre = baseline.centre
    known = [
        _FLOOR * abs(centre),
        usual_of(figure, spreads) * abs(centre),
        _spread(baseline),
        _spread(figure),
    ]
    spread = math.sqrt(2) * max(known)
    if not spread:
        return Beside(1.0 if figure.centre == centre else 0.0, spread)
    return Beside(float(2 * stats.norm.sf(abs(figure.centre - centre) / spread)), spread)


def two_samples(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """p-value for "nothing changed" between two sides of two values at least each, by Student's t,
    and the spread of the difference (standard deviation); no side repeats better than a percent.
    """
    floor = _FLOOR * abs(statistics.median(before))
    spreads = [max(statistics.stdev(side), floor) for side in (before, after)]
    counts = len(before), len(after)
    result = stats.ttest_ind_from_stats(
        statistics.fmean(before), spreads[0], counts[0],
        statistics.fmean(after), spreads[1], counts[1], equal_var=True,
    )  # fmt: skip
    spread = math.sqrt(sum(s**2 / n for s, n in zip(spreads, counts, strict=True)))
    p = float(result.pvalue)
    return (p if math.isfinite(p) else 1.0), spread


def tolerance(spread: float, p: float) -> float:
    """How far apart figures may be before their p-value falls below `p`."""
    return spread * _deviations(p)


@functools.cache
def _deviations(p: float) -> float:
    """Standard deviations that a normal variable exceeds, either way, with this probability."""
    return float(stats.norm.isf(p / 2))


def usual(runs: Iterable[Mapping[Key, Figure]]) -> dict[tuple[str, ...], float]:
    """The usual relative spread of each metric over the figures of some runs: the median over
    published bounds, artefacts left out.
    """
    found: dict[tuple[str, ...], list[float]] = {}
    for known in runs:
        doubts = artefacts.doubts(known)
        for key, figure in known.items():
            if not figure.mean or figure.low is None or key in doubts:
                continue
            relative = _spread(figure) / abs(figure.mean)
            for name in (key, (key.benchmark, key.metric)):
                found.setdefault(name, []).append(max(relative, _least(figure)))
    return {key: statistics.median(values) for key, values in found.items()}


def seen(history: Iterable[Night]) -> dict[tuple[str, ...], float]:
    """The relative spread of each metric from run to run: of the differences between neighbours,
    so that a change of level does not count.
    """
    values: dict[Key, list[float]] = {}
    for night in history:
        for key, past in night.figures.items():
            values.setdefault(key, []).append(past.value)
    return {
        key: _run_to_run(np.asarray(row, dtype=np.float64))
        for key, row in values.items()
        if len(row) >= _FEWEST and statistics.median(row)
    }


def _run_to_run(values: NDArray[np.float64]) -> float:
    """Of the differences between neighbours, by their mean distance, which one step does not
    dominate; widened, because a spread of few values is itself not known well.
    """
    steps = np.diff(values)
    distance = np.abs(steps - np.median(steps)).mean()
    deviation = distance * math.sqrt(math.pi / 2) / math.sqrt(2) * (1 + _FEW_WIDENS / len(values))
    return float(deviation / abs(np.median(values)))


def usual_of(figure: Figure, spreads: Spreads) -> float:
    """The usual relative spread of a metric from run to run."""
    key = figure.key
    return spreads.get(key, spreads.get((key.benchmark, key.metric), _least(figure)))


def _least(figure: Figure) -> float:
    return _LEAST_LOAD if figure.unit == Unit.PERCENT else _LEAST


def _spread(figure: Figure) -> float:
    """Standard deviation of one figure as far as it tells, in its unit."""
    if figure.spread is not None:
        return figure.spread
    if figure.low is None or figure.high is None:
        return 0.0
    return (figure.high - figure.low) / _RANGE_SDS
