"""Has a series of nights moved? The one test of a night against its history.

The mean of the last 1, 3, 6 and 10 nights is compared with the level of up to thirty nights before
them, and that of the last thirty with the oldest thirty of the same level, for a loss too slow for
any window that moves along. The smallest p-value counts, weighed for having looked five times. How
much such a difference scatters follows from the history (`evmperf.regress.spread`): from its
spread, and from how alike its nights are.

Nobody is believed who has not been seen to be right before. The same comparisons are made for the
nights of the history, each with what was known in it (an A/A), and

* where such differences had heavier tails than normal noise, tonight's are judged by these:
  Student's t, of which degrees and width are those that the lab's differences had;
* what a metric did twice before is its habit, and no change.

Differences that pass for normal noise only are `alone`: to be borne out by the nights to come.

The history begins at its last change point (ruptures, KernelCPD), in units of the noise over many
nights, so that a change is looked for until ten nights have it; then it is the level.

`python -m selftests.speed verdicts` measures all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import ruptures
from scipy import optimize, stats

from evmperf.regress import spread
from evmperf.regress.spread import FEWEST, REFERENCE, RESOLUTION, Flags, Floats, Numbers

__all__ = ["FEWEST", "LEVEL", "Shift", "changes", "judge"]

LEVEL = 0.12
"""Share of false alarms, where nobody says otherwise."""
_WEIGHTS = {1: 0.05, 3: 0.62, 6: 0.05, 10: 0.10}
"""By how many of the last nights: share of the allowed false alarms; the slow test has the rest."""
_SLOW = 0.18
_NEWEST = max(_WEIGHTS)
"""Nights that nobody learns from: what is being looked for may be in them."""
_ENOUGH = 22
"""Nights of one level from which on the newest are left out of what is learnt."""
_SLOW_FROM = 50
"""Nights of one level before which nothing is slow."""
_REPLAYED = 40
"""Nights of the history that are judged again."""
LONGEST = 400
"""Nights of the history that count at all."""
_SEGMENT = 10
"""Nights that a level must have lasted to be a level of its own."""
_PENALTY = 12.0
_AROUND = 3
"""Nights on either side that tell whether one is odd."""
_FAR = 4.0
"""Spreads at which a night among others is taken to be."""
_CALM = 0.75
"""How far off tonight may be, as a share of its own 95 % error, for earlier nights to vouch."""
_ALL, _LEAST_SHARE, _DISAGREED = 3, 0.3, 0.5
"""Of so few nights each must be off by that share of a spread at least, or they count as half as
far off: two odd nights among three are no new level.
"""
_WORSE = 0.8
"""Share of the allowed false alarms that are of something worse: nobody is woken by the rest."""
_COMMON, _RARE = 0.1, 5
"""Two points at which tails are measured: that share of all, and so many of them."""
_AS_FAR = 0.75
"""The share of a difference that is as good as the whole, for a habit."""
_CHANCE = 1.02
"""By how much the tails of normal noise seem wider, at the most."""
_LEAST_WIDTH = 1e-3
_DEGREES = np.array([1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 30, 100, 1000.0])


@dataclass(frozen=True)
class Shift:
    """What a series says: `p` for "nothing changed", and `alone` the same for normal noise;
    `nights` last ones are different from `level` (in the unit of the values), `off` by so much of
    it. `slow` is whether this took longer than any window.

    `proven` is within what share of the level the newest nights are, at 95 %; `seen` the share by
    which tonight, `lasting` that by which ten nights must be off for an alarm.
    """

    p: float
    alone: float
    nights: int
    level: float
    off: float
    slow: bool
    proven: float
    seen: float
    lasting: float


def judge(
    series: Sequence[Sequence[float]], level: float = LEVEL, worse: Sequence[int] | None = None
) -> list[Shift]:
    """Judge each series, whose last value is the run in question; all must have FEWEST nights of
    history before it. `level` is the share of false alarms that `seen` is about, `worse` is 1 for
    each metric of which higher figures are worse, -1 for lower ones, 0 for neither.
    """
    rows, units = spread.stacked(series, LONGEST)
    begins = _begins(rows)
    rows[np.arange(rows.shape[1]) < begins[:, None]] = np.nan
    windows = _windows(rows, rows.shape[1] - begins)
    count = len(rows)
    alone = np.ones(count)
    p = np.ones(count)
    nights = np.ones(count, dtype=np.int64)
    centre, off, proven = np.zeros(count), np.zeros(count), np.full(count, np.inf)
    calm = np.ones(count, dtype=bool)
    seen, lasting = np.full(count, np.inf), np.full(count, np.inf)
    suspected = np.min([np.nan_to_num(_two_sided(w.far[:, -1]), nan=1.0) / w.weight for w in windows], axis=0)
    quiet = suspected > 3 * level / count
    if quiet.mean() < 0.5:
        quiet[:] = True
    for window in windows:
        known = np.isfinite(window.far[:, -1])
        weight = window.weight * _sided(window.far[:, -1], worse)
        plain = np.where(known, _two_sided(window.far[:, -1]) / weight, 1.0)
        tail = _tail(window, quiet)
        careful = np.where(known, tail.p(window.far[:, -1]) / weight, 1.0)
        careful = np.where(window.habit, 1.0, np.maximum(careful, plain))
        alone = np.minimum(alone, plain)
        # The first window says what the level is, whether or not anything is off.
        better = (careful < p) | (known & (window.size == 1))
        p = np.where(better, np.minimum(careful, p), p)
        nights = np.where(better, window.size or window.since, nights)
        centre = np.where(better, window.level, centre)
        off = np.where(better, window.off, off)
        reach = window.error * tail.reach(level / count * window.weight)
        if window.size == 1:
            seen = np.where(known, reach, seen)
        if 0 < window.size <= 3:  # as many as can be called tonight
            # Three nights prove nothing of tonight where tonight is itself far off.
            error = 1.96 * max(tail.width, 1.0) * window.error
            calm &= (window.size > 1) | (np.abs(window.off) <= error * _CALM)
            sure = np.abs(window.off) + error
            better = known & (calm | (window.size == 1))
            proven = np.where(better, np.minimum(proven, sure), proven)
        if window.size:
            lasting = np.where(known, np.minimum(lasting, reach), lasting)
    slow = nights > _NEWEST
    nights = np.where(slow, nights, _dated(rows, centre))
    return [
        Shift(
            float(min(p[i], 1.0)),
            float(min(alone[i], 1.0)),
            int(nights[i]),
            _in_unit(centre[i], units[i]),
            _share(off[i], centre[i], units[i]),
            bool(slow[i]),
            *(_share(v[i], centre[i], units[i]) for v in (proven, seen, lasting)),
        )
        for i in range(count)
    ]


def _sided(far: Floats, worse: Sequence[int] | None) -> Floats:
    """By what to multiply the allowed false alarms: more on the side of what is worse."""
    sides = np.zeros(len(far)) if worse is None else np.array(worse)
    same = np.where(sides * far > 0, 2 * _WORSE, 2 * (1 - _WORSE))
    return np.asarray(np.where(sides == 0, 1.0, same))


def _dated(rows: Floats, level: Floats) -> Numbers:
    """Of how many of the last nights the mean is furthest from a level, in deviations: since when
    it is another.
    """
    off = np.nan_to_num(rows[:, ::-1][:, :_NEWEST] - level[:, None])
    counts = np.arange(1, off.shape[1] + 1)
    return np.asarray(np.abs(off.cumsum(axis=1) / np.sqrt(counts)).argmax(axis=1) + 1)


def _in_unit(value: float, unit: float) -> float:
    return float(value * unit if unit else np.exp(value))


def _share(value: float, centre: float, unit: float) -> float:
    """A difference as a share of the level."""
    if unit:
        return float(value / abs(centre)) if centre else float(value and np.inf)
    return float(np.expm1(min(value, 700.0)))


@dataclass(frozen=True)
class _Window:
    """One comparison: of tonight its level, difference and error; and how far off (in normal
    deviations) it was in each night of the replay, tonight last. `habit` are metrics that were as
    far off twice before. The slow one has size 0, and is `since` so many nights.
    """

    size: int
    weight: float
    level: Floats
    off: Floats
    error: Floats
    far: Floats
    habit: Flags
    since: Numbers | int = 0


def _windows(rows: Floats, lengths: Numbers) -> list[_Window]:
    total = rows.shape[1]
    learnt = rows[:, :-1].copy()
    learnt[lengths >= _ENOUGH, max(total - _NEWEST, 0) :] = np.nan
    memory, variance = spread.memory(learnt)
    ends = np.arange(max(FEWEST, total - _REPLAYED - _NEWEST), total + 1)
    level, own, count = spread.before(rows, ends)
    squeezed = [spread.squeezed(own[:, i], np.maximum(count[:, i] - 1.0, 1.0)) for i in range(len(ends))]
    spreads = np.sqrt(np.stack([s for s, _ in squeezed], axis=1))
    spreads[:, -1 - _NEWEST :] *= _restless(rows)
    degrees = np.stack([d for _, d in squeezed], axis=1)
    found = []
    for nights, weight in _WEIGHTS.items():
        first = int(ends[0]) + nights - 1
        if first >= total:
            break
        newest = np.arange(first, total)
        at = newest - nights + 1 - ends[0]
        there, scale = level[:, at], spreads[:, at]
        groups = np.lib.stride_tricks.sliding_window_view(rows, nights, axis=1)[:, newest - nights + 1]
        factor = np.full(scale.shape, np.nan)
        for older in range(FEWEST, REFERENCE + 1):
            if (here := count[:, at] == older).any():
                factor = np.where(here, memory.factor(nights, older)[:, None], factor)
        if nights > 1:
            # As far for nights that are alike as for others, in errors of the whole group.
            reach = _FAR * scale * np.sqrt(factor / (1 / nights + 1 / np.maximum(count[:, at], 1)))
            groups = np.clip(groups, (there - reach)[..., None], (there + reach)[..., None])
        off = groups.mean(axis=-1) - there
        agree = np.ones(off.shape, dtype=bool)
        if 1 < nights <= _ALL:
            sides = (groups - there[..., None]) * np.sign(off)[..., None]
            agree = (sides >= _LEAST_SHARE * scale[..., None]).all(axis=-1)
        error = scale * np.sqrt(factor)
        far = _normal(off / error, degrees[:, at]) * np.where(agree, 1.0, _DISAGREED)
        habit = _habit(np.abs(far), nights)
        found.append(_Window(nights, weight, there[:, -1], off[:, -1], error[:, -1], far, habit))
    if (lengths >= _SLOW_FROM).any():
        found.append(_slow(rows, lengths, variance))
    return found


def _restless(rows: Floats) -> float:
    """By how much more the newest nights differ from their neighbours than those before did, in the
    median of the metrics; a step is one difference among many.
    """
    steps = np.abs(np.diff(rows, axis=1))
    newest, before = steps[:, -_NEWEST:], steps[:, -_NEWEST - REFERENCE : -_NEWEST]
    known = (np.isfinite(before).sum(axis=1) >= FEWEST) & np.isfinite(newest).all(axis=1)
    if not known.any():
        return 1.0
    usual = np.maximum(np.nanmean(before[known], axis=1), RESOLUTION)
    return max(float(np.median(np.mean(newest[known], axis=1) / usual)), 1.0)


def _slow(rows: Floats, lengths: Numbers, variance: Floats) -> _Window:
    """The newest nights against the oldest of the same level. The nights between tell how alike
    distant nights are, in the median of the metrics: that of one that drifts would excuse itself.
    """
    total = rows.shape[1]
    lags = [1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, *range(50, total, 15)]
    seen = spread.variogram(rows, variance, [lag for lag in lags if lag < total])
    told = np.isfinite(seen).sum(axis=0) * 4 > (lengths >= _SLOW_FROM).sum()
    lags = [lag for lag, enough in zip(lags, told, strict=False) if enough]
    known = np.where(np.isfinite(seen), seen, 1.0)[:, told]
    # Few pairs of nights are far apart: they count as little as they know.
    pairs = (total - np.array(lags, dtype=np.float64)) ** 2
    usual = optimize.isotonic_regression(stats.trim_mean(known, 0.25), weights=pairs).x
    # A rise that chance may have made is none.
    chance = 2 * known.std(axis=0) / np.sqrt(len(known))
    usual = usual[0] + np.maximum(usual - usual[0] - chance, 0.0)
    empty = np.full(len(rows), np.nan)
    level, off, error, far = (empty.copy() for _ in range(4))
    for length in np.unique(lengths[lengths >= _SLOW_FROM]):
        mine = np.flatnonzero(lengths == length)
        size = min(REFERENCE, int(length) // 2)
        share = spread.weights(size, size, int(length) - 2 * size)
        factor = max(float(np.interp(np.arange(1, len(share) + 1), lags, usual) @ share), 2 / size)
        oldest, before, _ = spread.levels(rows[mine, total - length :][:, :size])
        newest, after, _ = spread.levels(rows[mine, total - size :])
        level[mine], off[mine] = oldest, newest - oldest
        error[mine] = np.sqrt((before + after) / 2 * factor)
        far[mine] = _normal(off[mine] / error[mine], np.full(len(mine), 2.0 * size - 2))
    no = np.zeros(len(rows), dtype=bool)
    return _Window(0, _SLOW, level, off, error, far[:, None], no, lengths - REFERENCE)


def _normal(off: Floats, degrees: Floats) -> Floats:
    """Student's t as a normal deviation of the same probability."""
    p = stats.t.sf(np.abs(off), degrees)
    return np.asarray(stats.norm.isf(np.maximum(p, 1e-300)) * np.sign(off))


def _two_sided(deviation: Floats) -> Floats:
    return np.asarray(2 * stats.norm.sf(np.abs(deviation)))


def _habit(far: Floats, nights: int) -> Flags:
    """Whether a metric was twice before as far off as it is now, groups apart."""
    past = far[:, :-1]
    past = past[:, : max(past.shape[1] + 1 - (_NEWEST if past.shape[1] > 2 * _NEWEST else nights), 0)]
    apart = np.nan_to_num(past[:, ::-1][:, ::nights])
    if apart.shape[1] < 2:
        return np.zeros(len(far), dtype=bool)
    second = np.sort(apart, axis=1)[:, -2]
    return np.asarray(second >= _AS_FAR * np.nan_to_num(far[:, -1], nan=np.inf))


@dataclass(frozen=True)
class _Tail:
    """What the lab's differences were like when nobody suspected a change: Student's t."""

    degrees: float
    width: float
    past: Floats | None = None

    def p(self, far: Floats) -> Floats:
        """The probability of at least such a difference."""
        width = max(self.width, _LEAST_WIDTH)
        found = np.asarray(2 * stats.t.sf(np.abs(far) / width, self.degrees))
        if self.past is None:
            return found
        # What has been that far off before, but for once, is no rarer than it was.
        further = len(self.past) - np.searchsorted(self.past, np.nan_to_num(np.abs(far)))
        return np.asarray(np.maximum(found, np.maximum(further - 1, 0) / len(self.past)))

    def reach(self, p: float) -> float:
        """The deviation of that probability."""
        normal = float(stats.norm.isf(p / 2))
        return max(normal, self.width * float(stats.t.isf(p / 2, self.degrees)))


def _tail(window: _Window, quiet: Flags) -> _Tail:
    past = np.abs(window.far[quiet, :-1])
    if past.shape[1] > 2 * _NEWEST:
        past = past[:, :-_NEWEST]
    known = np.sort(past[np.isfinite(past)])
    if not len(known):
        return _Tail(float(_DEGREES[-1]), 1.0)
    if len(known) < 100:
        return _Tail(float(_DEGREES[-1]), 1.0, known)
    rare = _RARE / len(known)
    usual, far = np.quantile(known, [1 - _COMMON, 1 - rare])
    ratios = stats.t.isf(rare / 2, _DEGREES) / stats.t.isf(_COMMON / 2, _DEGREES)
    ratio = far / max(usual, 1e-9)
    if ratio < ratios[-1] * _CHANCE:
        return _Tail(float(_DEGREES[-1]), float(usual / stats.norm.isf(_COMMON / 2)), known)
    degrees = float(np.exp(np.interp(-ratio, -ratios, np.log(_DEGREES))))
    return _Tail(degrees, float(usual / stats.t.isf(_COMMON / 2, degrees)), known)


def _begins(rows: Floats) -> Numbers:
    """Where the present level of each row began, leaving the newest nights out of it."""
    known = rows[:, :-_NEWEST]
    begins = np.isnan(rows).sum(axis=1)
    for index, places in enumerate(_changes(known)):
        while places:
            place = places.pop()
            first = places[-1] if places else begins[index]
            if _is_step(known[index, first:], place - first):
                begins[index] = place
                break
    return np.asarray(begins, dtype=np.int64)


def _is_step(values: Floats, at: int) -> bool:
    """Whether a step explains a series better than a slope: who drifts has no new level."""
    values = values - values.mean()
    step = at * values[:at].mean() ** 2 + (len(values) - at) * values[at:].mean() ** 2
    slope = np.arange(len(values)) - (len(values) - 1) / 2
    return bool(step > (values @ slope) ** 2 / (slope @ slope))


def _changes(rows: Floats) -> list[list[int]]:
    """The change points of each row, as columns."""
    long = (~np.isnan(rows)).sum(axis=1) >= 2 * _SEGMENT
    found: list[list[int]] = [[] for _ in rows]
    if not long.any():
        return found
    rows = rows[long]
    steps = np.abs(np.diff(rows, axis=1))
    usual = np.nanquantile(steps, 0.85, axis=1, keepdims=True)
    kept = np.minimum(steps, np.maximum(3 * usual, RESOLUTION))
    noise = np.maximum(np.nanmean(kept, axis=1) * np.sqrt(np.pi) / 2, RESOLUTION)
    rises = spread.variogram(rows, noise**2, (1, 3, 4, 5, 6))
    rise = np.nanmedian(rises[:, 1:], axis=0).mean() / max(np.nanmedian(rises[:, 0]), 1e-9)
    noise *= np.sqrt(max(float(rise), 1.0))
    for index, row, scale in zip(np.flatnonzero(long), rows, noise, strict=True):
        found[index] = _change_points(row, scale)
    return found


def _change_points(row: Floats, noise: float) -> list[int]:
    first = int(np.isnan(row).sum())
    values = row[first:] / noise
    # One odd night is no level: what is far from the nights around it counts as less far.
    around = np.pad(values, _AROUND, mode="reflect")
    around = np.median(np.lib.stride_tricks.sliding_window_view(around, 2 * _AROUND + 1), axis=1)
    values = np.clip(values, around - _FAR, around + _FAR)
    found: list[int] = (
        ruptures.KernelCPD(kernel="linear", min_size=_SEGMENT)
        .fit((values - np.median(values)).reshape(-1, 1))
        .predict(pen=_PENALTY * np.log(len(values)))
    )
    return [first + place for place in found[:-1]]


def changes(series: Sequence[Sequence[float]]) -> list[list[int]]:
    """Where each series, nights of one metric, has come to another level: places, ascending. What
    fewer than ten nights have is no level yet.
    """
    if not series:
        return []
    rows, _ = spread.stacked(series, max(map(len, series)))
    missing = np.isnan(rows).sum(axis=1)
    return [
        _settled(row[gone:], [place - gone for place in places])
        for row, gone, places in zip(rows, missing, _changes(rows), strict=True)
    ]


def _settled(values: Floats, places: list[int]) -> list[int]:
    """The places without a last one that is only there because a level has so many nights, while
    the nights that are different are fewer.
    """
    if not places or places[-1] != len(values) - _SEGMENT:
        return places
    row = values[places[-2] if len(places) > 1 else 0 :]
    row = row - row.mean()
    left = np.arange(1, len(row))
    sums = row.cumsum()
    # The split with the least squares is that with the largest of these.
    fit = sums[:-1] ** 2 / left + (sums[-1] - sums[:-1]) ** 2 / (len(row) - left)
    return places[:-1] if fit.argmax() + 1 > len(row) - _SEGMENT else places
