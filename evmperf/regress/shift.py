"""Has a series of nights moved? Change points by ruptures, tests by scipy.

The last nights, in groups of 1, 3, 6 and 10, are compared with those before them (Student's t, all
metrics at once); the smallest p-value counts, weighed for having looked four times (Bonferroni
with unequal weights: a lone night is believed least). A group of three or more must also differ by
rank (Mann-Whitney), so that one odd night cannot carry it, and a lone night says nothing where the
history has odd nights. The history begins at its last change point.

Choice measured by `python -m selftests.speed verdicts`; the table in docs/judging.md has the
alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import ruptures
from numpy.typing import NDArray
from scipy import stats

from evmperf.model.stats import outliers

Floats = NDArray[np.float64]
_T = TypeVar("_T")

FEWEST = 5
"""Nights of history below which a series says nothing."""
_WEIGHTS = {1: 0.02, 3: 0.13, 6: 0.35, 10: 0.50}
"""By how many of the last nights: share of the allowed false alarms. They add up to 1."""
_RANK_P = 0.01
_SEGMENT = 10
"""Nights that a level must have lasted to be a level of its own."""
_PENALTY = 6.0
_RESOLUTION = 1e-3
"""Relative spread below which a series counts as quantised: it never has less."""


@dataclass(frozen=True)
class Shift:
    """What a series says: `p` for "nothing changed", the number of last nights that are different,
    and the level and spread (standard deviation) of the nights before those.
    """

    p: float
    nights: int
    level: float
    spread: float


def judge(series: Sequence[Sequence[float]]) -> list[Shift]:
    """Judge each series, whose last value is the run in question; all must have FEWEST nights of
    history before it.
    """
    begins = dict(_stacked(series, _begins))
    present = [values[begins[index] :] for index, values in enumerate(series)]
    found = dict(_stacked(present, _judge))
    return [found[index] for index in range(len(series))]


def _stacked(
    series: Sequence[Sequence[float]], work: Callable[[Floats], Iterable[_T]]
) -> Iterator[tuple[int, _T]]:
    """Do the work on all series of one length at once; results with the series' index."""
    by_length: dict[int, list[int]] = {}
    for index, values in enumerate(series):
        by_length.setdefault(len(values), []).append(index)
    for indices in by_length.values():
        together = np.array([series[index] for index in indices], dtype=np.float64)
        yield from zip(indices, work(together), strict=True)


def _begins(together: Floats) -> list[int]:
    """Where the present level of each row began, leaving the last nights out of it."""
    history = together[:, : -max(_WEIGHTS)]
    rows, length = history.shape
    if length < 2 * _SEGMENT:
        return [0] * rows
    noise = stats.median_abs_deviation(np.diff(history), axis=1, scale="normal") / np.sqrt(2)
    noise = np.maximum(noise, _RESOLUTION * np.abs(np.median(history, axis=1)))
    return [
        _last_change(row / scale) if scale else 0 for row, scale in zip(history, noise, strict=True)
    ]


def _last_change(values: Floats) -> int:
    """The last change point of a history in units of its noise; 0 for none."""
    found: list[int] = (
        ruptures.KernelCPD(kernel="linear", min_size=_SEGMENT)
        .fit(values.reshape(-1, 1))
        .predict(pen=_PENALTY * np.log(len(values)))
    )
    return found[-2] if len(found) > 1 else 0


def _judge(together: Floats) -> list[Shift]:
    """Judge series of one length, a row each."""
    rows, length = together.shape
    best = np.ones(rows)
    nights = np.ones(rows, dtype=int)
    level = np.median(together[:, :-1], axis=1)
    spread = together[:, :-1].std(axis=1, ddof=1)
    for count, weight in _WEIGHTS.items():
        if length - count < FEWEST:
            break
        p = _student(together, count) / weight
        for row in np.flatnonzero(p < np.minimum(best, 0.05)):
            if not _confirmed(together[row], count):
                p[row] = 1.0
        better = p < best
        before = together[:, :-count]
        best, nights = np.where(better, p, best), np.where(better, count, nights)
        level = np.where(better, np.median(before, axis=1), level)
        spread = np.where(better, before.std(axis=1, ddof=1), spread)
    return [
        Shift(float(p), int(count), float(middle), float(deviation))
        for p, count, middle, deviation in zip(best, nights, level, spread, strict=True)
    ]


def _student(together: Floats, count: int) -> Floats:
    """p-values of the last `count` nights against those before, a row each."""
    before, after = together[:, :-count], together[:, -count:]
    mean = before.mean(axis=1)
    spread = np.maximum(before.std(axis=1, ddof=1), _RESOLUTION * np.abs(mean))
    own = after.std(axis=1, ddof=1) if count > 1 else np.zeros(len(after))
    result: Any = stats.ttest_ind_from_stats(
        mean, spread, before.shape[1], after.mean(axis=1), own, count, equal_var=True
    )
    return np.nan_to_num(np.asarray(result.pvalue, dtype=np.float64), nan=1.0)


def _confirmed(values: Floats, count: int) -> bool:
    before, after = values[:-count], values[-count:]
    if count == 1:
        return not any(outliers(before.tolist()))
    method = "exact" if len(before) <= 100 else "asymptotic"
    return bool(stats.mannwhitneyu(before, after, method=method).pvalue < _RANK_P)
