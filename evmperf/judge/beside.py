"""Is a figure beside one other figure, or a few beside a few? Their spread decides.

One model of what is printed: a guide prints a mean with the smallest and the largest of a number of
runs that it does not tell; they are taken to be RUNS, and the width of the range to be that of so
many values from a normal distribution. A figure without bounds is one run.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from evmperf.judge.nights import EarlierNight
from evmperf.judge.published.declared import tables
from evmperf.model import distributions as special
from evmperf.model.figures import Figure, Key
from evmperf.model.units import Unit

RUNS = 5
"""Runs that a printed range is taken to be of."""
RANGE_SDS = 2.326
"""Width of the range of so many values of a normal distribution, in standard deviations (L. H. C.
Tippett, Biometrika 17, 1925).
"""
SURE = 0.05
"""Probability that a figure lies outside of what is said of it."""
_STUDENT = 2.776
"""Student's deviation, with the degrees of freedom of so many runs, beyond which that is."""
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


class ToldBeside(NamedTuple):
    """What two sides say, in their unit: how far from the baseline a figure is no change
    (`tolerance`) and by how much their difference may be off (`error`), both 19 times of 20. Of
    measured figures `p` is that of "nothing changed"; it is None of printed ones, which `differ`.
    """

    tolerance: float
    error: float
    differ: bool = False
    p: float | None = None

    def at(self, limit: float) -> ToldBeside:
        """The same, with differences of measured figures called so up to a p-value."""
        if self.p is None:
            return self
        return self._replace(
            differ=self.p <= limit, tolerance=self.error * deviations(limit) / deviations(SURE)
        )


def _measured(p: float, spread: float) -> ToldBeside:
    return ToldBeside(spread * deviations(SURE), spread * deviations(SURE), p=p)


def compare(figure: Figure, baseline: Figure, spreads: Spreads) -> ToldBeside:
    """Compare two figures of one metric, measured or published."""
    if figure.published or baseline.published:
        return _printed(figure, baseline, spreads)
    centre = abs(baseline.mean)
    least = [_FLOOR * centre, usual_of(figure, spreads) * centre]
    spread = math.sqrt(2) * max(*least, _spread(baseline), _spread(figure))
    moved = abs(figure.mean - baseline.mean)
    if not spread:
        return _measured(float(not moved), spread)
    return _measured(float(2 * special.ndtr(-moved / spread)), spread)


def two_samples(before: Sequence[float], after: Sequence[float]) -> ToldBeside:
    """Compare two sides of two values at least each, by Student's t; no side repeats better
    than half a percent.
    """
    floor = _FLOOR * abs(statistics.median(before))
    spreads = [max(statistics.stdev(side), floor) for side in (before, after)]
    counts = len(before), len(after)
    spread = math.sqrt(sum(s**2 / n for s, n in zip(spreads, counts, strict=True)))
    moved = abs(statistics.fmean(after) - statistics.fmean(before))
    if not spread:
        return _measured(float(not moved), spread)
    degrees = sum(counts) - 2
    pooled = sum(s**2 * (n - 1) for s, n in zip(spreads, counts, strict=True)) / degrees
    error = math.sqrt(pooled * sum(1 / n for n in counts))
    return _measured(special.student(degrees, moved / error), spread)


@functools.cache
def deviations(p: float) -> float:
    """Standard deviations that a normal variable exceeds, either way, with this probability."""
    return -float(special.ndtri(p / 2))


def _printed(figure: Figure, baseline: Figure, spreads: Spreads) -> ToldBeside:
    """What a reader with both figures before him can say. Two ranges differ where each mean is outside of the
    other; one run differs from a range where it is further from the mean than one more run would
    be; two single runs where they are further apart than two runs of that metric usually are.
    """
    ours, theirs = _range(figure), _range(baseline)
    moved = abs(figure.mean - baseline.mean)
    step = _step(baseline)
    if ours and theirs:
        apart = not theirs[0] <= figure.mean <= theirs[1] and not ours[0] <= baseline.mean <= ours[1]
        reach = max(baseline.mean - theirs[0], theirs[1] - baseline.mean)
        error = math.hypot(*(_STUDENT * _deviation(r) / math.sqrt(RUNS) for r in (ours, theirs)))
        return ToldBeside(reach, max(error, step), apart and moved > step)
    if span := ours or theirs:
        run = baseline.mean if ours else figure.mean
        allowed = max(_STUDENT * _deviation(span) * math.sqrt(1 + 1 / RUNS), step)
        return ToldBeside(allowed, allowed, moved > allowed and not span[0] <= run <= span[1])
    usual = usual_of(figure, spreads) * abs(baseline.mean)
    allowed = max(deviations(SURE) * math.sqrt(2) * usual, step)
    return ToldBeside(allowed, allowed, moved > allowed)


def _range(figure: Figure) -> tuple[float, float] | None:
    if figure.low is None or figure.high is None or figure.low == figure.high:
        return None
    return figure.low, figure.high


def _deviation(bounds: tuple[float, float]) -> float:
    return (bounds[1] - bounds[0]) / RANGE_SDS


def _step(figure: Figure) -> float:
    """The resolution of the program at a figure: to the next value that it can print."""
    table = tables().get(figure.key.benchmark)
    quotient = table.quotients.get(figure.key.case) if table else None
    return figure.mean**2 / quotient if quotient else 0.0


def usual(runs: Iterable[Mapping[Key, Figure]]) -> dict[tuple[str, ...], float]:
    """The usual relative spread of each metric over the figures of some runs: the median over
    published bounds, figures that are not judged left out.
    """
    by_name: dict[tuple[str, ...], list[float]] = {}
    for figures_of_run in runs:
        for key, figure in figures_of_run.items():
            if not figure.mean or figure.low is None or figure.doubt:
                continue
            relative = max(_spread(figure) / abs(figure.mean), _least(figure))
            for name in (key, (key.benchmark, key.metric)):
                by_name.setdefault(name, []).append(relative)
    return {key: statistics.median(values) for key, values in by_name.items()}


def seen(history: Iterable[EarlierNight]) -> dict[tuple[str, ...], float]:
    """The relative spread of each metric from run to run: of the differences between neighbours,
    so that a change of level does not count.
    """
    values: dict[Key, list[float]] = {}
    for night in history:
        for key, past in night.figures.items():
            values.setdefault(key, []).append(past.value)
    return {
        key: _run_to_run(row) for key, row in values.items() if len(row) >= _FEWEST and statistics.median(row)
    }


def _run_to_run(values: Sequence[float]) -> float:
    """Of the differences between neighbours, by their mean distance, which one step does not
    dominate; widened, because a spread of few values is itself not known well.
    """
    steps = [after - before for before, after in itertools.pairwise(values)]
    middle = statistics.median(steps)
    distance = statistics.fmean(abs(step - middle) for step in steps)
    widened = math.sqrt(math.pi) / 2 * (1 + _FEW_WIDENS / len(values))
    return distance * widened / abs(statistics.median(values))


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
    bounds = _range(figure)
    return _deviation(bounds) if bounds else 0.0
