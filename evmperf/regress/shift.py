"""Has a series of nights moved? Change points by ruptures, tests by scipy.

The last nights, in groups of 1, 3, 6 and 10, are compared with those before them (all metrics at
once); the smallest p-value counts, weighed for having looked four times (Bonferroni with unequal
weights: a lone night is believed least). The history begins at its last change point.

Heavy tails must not raise alarms, so no group is believed for being far off alone:

* groups of 6 and 10 are compared by Student's t on normal scores (van der Waerden's ranks as
  quantiles of a normal distribution), which is as sharp as Student's t on the values where noise is
  normal, and holds its level whatever the noise;
* groups of 1 and 3 are too few for ranks. They are compared by Student's t on the values, and must
  be further off than groups of that length ever were in the history of all metrics together, but
  for so many as leaves one night in fifty a false alarm.

Choice measured by `python -m selftests.speed verdicts`; the table in docs/judging.md has the
alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import ruptures
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
_T = TypeVar("_T")

FEWEST = 5
"""Nights of history below which a series says nothing."""
_WEIGHTS = {1: 0.02, 3: 0.03, 6: 0.15, 10: 0.80}
"""By how many of the last nights: share of the allowed false alarms. They add up to 1."""
_FEW = 3
"""Nights up to which a group is too small for ranks."""
_NIGHTS_PER_ALARM = 50
_TAIL = 3.0
"""Degrees of freedom of the heaviest tails that boards are expected to have."""
_SEGMENT = 10
"""Nights that a level must have lasted to be a level of its own."""
_PENALTY = 6.0
_AT_ONCE = 64
"""Series that are worked on together: more are no faster, and a year of many takes memory."""
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
    farthest = {count: _farthest(present, count) for count in _WEIGHTS if count <= _FEW}
    found = dict(_stacked(present, lambda together: _judge(together, farthest)))
    return [found[index] for index in range(len(series))]


def _stacked(
    series: Sequence[Sequence[float]], work: Callable[[Floats], Iterable[_T]]
) -> Iterator[tuple[int, _T]]:
    """Do the work on series of one length at once; results with the series' index."""
    by_length: dict[int, list[int]] = {}
    for index, values in enumerate(series):
        by_length.setdefault(len(values), []).append(index)
    for alike in by_length.values():
        for at in range(0, len(alike), _AT_ONCE):
            indices = alike[at : at + _AT_ONCE]
            together = np.array([series[index] for index in indices], dtype=np.float64)
            yield from zip(indices, work(together), strict=True)


def changes(series: Sequence[Sequence[float]]) -> list[list[int]]:
    """Where each series, nights of one metric, has come to another level: places, ascending. What
    fewer than ten nights have is no level yet.
    """
    found = dict(_stacked(series, _changes))
    return [_settled(row, found[index]) for index, row in enumerate(series)]


def _settled(values: Sequence[float], places: list[int]) -> list[int]:
    """The places without a last one that is only there because a level has so many nights, while
    the nights that are different are fewer.
    """
    if not places or places[-1] != len(values) - _SEGMENT:
        return places
    row = np.array(values[places[-2] if len(places) > 1 else 0 :])
    row -= row.mean()
    left = np.arange(1, len(row))
    sums = row.cumsum()
    # The split with the least squares is that with the largest of these.
    fit = sums[:-1] ** 2 / left + (sums[-1] - sums[:-1]) ** 2 / (len(row) - left)
    return places[:-1] if fit.argmax() + 1 > len(row) - _SEGMENT else places


def _begins(together: Floats) -> list[int]:
    """Where the present level of each row began, leaving the last nights out of it."""
    return [(found or [0])[-1] for found in _changes(together[:, : -max(_WEIGHTS)])]


def _changes(history: Floats) -> list[list[int]]:
    """The change points of each row."""
    rows, length = history.shape
    if length < 2 * _SEGMENT:
        return [[] for _ in range(rows)]
    noise = stats.median_abs_deviation(np.diff(history), axis=1, scale="normal") / np.sqrt(2)
    noise = np.maximum(noise, _RESOLUTION * np.abs(np.median(history, axis=1)))
    return [
        _change_points(row / scale) if scale else []
        for row, scale in zip(history, noise, strict=True)
    ]


def _change_points(values: Floats) -> list[int]:
    """The change points of a history in units of its noise."""
    found: list[int] = (
        ruptures.KernelCPD(kernel="linear", min_size=_SEGMENT)
        .fit(values.reshape(-1, 1))
        .predict(pen=_PENALTY * np.log(len(values)))
    )
    return found[:-1]


def _judge(together: Floats, farthest: Mapping[int, float]) -> list[Shift]:
    """Judge series of one length, a row each."""
    rows, length = together.shape
    best = np.ones(rows)
    nights = np.ones(rows, dtype=int)
    level = np.median(together[:, :-1], axis=1)
    spread = together[:, :-1].std(axis=1, ddof=1)
    for count, weight in _WEIGHTS.items():
        if length - count < FEWEST:
            break
        if count <= _FEW:
            p, off = _student(together, count)
            p[off <= farthest[count]] = 1.0
        else:
            p, _ = _student(_normal_scores(together), count)
        p = p / weight
        better = p < best
        before = together[:, :-count]
        best, nights = np.where(better, p, best), np.where(better, count, nights)
        level = np.where(better, np.median(before, axis=1), level)
        spread = np.where(better, before.std(axis=1, ddof=1), spread)
    return [
        Shift(float(p), int(count), float(middle), float(deviation))
        for p, count, middle, deviation in zip(best, nights, level, spread, strict=True)
    ]


def _normal_scores(together: Floats) -> Floats:
    """Each value's rank in its row as a quantile of the normal distribution."""
    ranks = stats.rankdata(together, axis=1)
    return np.asarray(special.ndtri(ranks / (together.shape[1] + 1)), dtype=np.float64)


def _student(together: Floats, count: int) -> tuple[Floats, Floats]:
    """p-values of the last `count` nights against those before, a row each, and how far off they
    are in units of the spread before.
    """
    before, after = together[:, :-count], together[:, -count:]
    mean = before.mean(axis=1)
    spread = np.maximum(before.std(axis=1, ddof=1), _RESOLUTION * np.abs(mean))
    own = after.std(axis=1, ddof=1) if count > 1 else np.zeros(len(after))
    result: Any = stats.ttest_ind_from_stats(
        mean, spread, before.shape[1], after.mean(axis=1), own, count, equal_var=True
    )
    p = np.nan_to_num(np.asarray(result.pvalue, dtype=np.float64), nan=1.0)
    return p, _off(after.mean(axis=1), mean, spread)


def _off(values: Floats, mean: Floats, spread: Floats) -> Floats:
    distance = np.abs(values - mean)
    return np.divide(distance, spread, out=np.zeros_like(distance), where=spread > 0)


def _farthest(series: Sequence[Sequence[float]], count: int) -> float:
    """How far off groups of so many nights were in the histories, each from the rest of its own,
    but for the share of them that one false alarm in fifty nights leaves. Histories of fewer than
    fifty groups are extrapolated by the tail of Student's t with 3 degrees of freedom.
    """
    found = np.concatenate([row for _, row in _stacked(series, lambda t: _groups_off(t, count))])
    found.sort()
    if not len(found):
        return 0.0
    nights = len(found) / len(series)
    largest = found[-1 - int(nights / _NIGHTS_PER_ALARM)]
    further = max(1.0, _NIGHTS_PER_ALARM / nights) ** (1 / _TAIL)
    return float(largest * further)


def _groups_off(together: Floats, count: int) -> Floats:
    """For each row: how far off each group of its history is from the other nights there."""
    history = together[:, : -max(_WEIGHTS) if together.shape[1] > 2 * max(_WEIGHTS) else -count]
    groups = history.shape[1] // count
    if history.shape[1] - count < FEWEST:
        return np.empty((len(together), 0))
    history = history[:, history.shape[1] - groups * count :]
    # About the middle, so that squares of large values do not swallow the spread.
    history = history - np.median(history, axis=1, keepdims=True)
    blocks = history.reshape(len(history), groups, count)
    left = history.shape[1] - count
    sums = history.sum(axis=1, keepdims=True) - blocks.sum(axis=2)
    squares = (history**2).sum(axis=1, keepdims=True) - (blocks**2).sum(axis=2)
    mean = sums / left
    spread = np.sqrt(np.maximum(squares - left * mean**2, 0.0) / (left - 1))
    floor = _RESOLUTION * np.abs(np.median(together, axis=1))[:, None]
    return _off(blocks.mean(axis=2), mean, np.maximum(spread, floor))
