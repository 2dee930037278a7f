"""Has a series of nights moved? The one test of a night against its history.

The mean of the last 1, 3, 6 and 10 nights is compared with the level of up to thirty nights before
them, and that of the last thirty with the oldest thirty of the same level, for a loss too slow for
any window that moves along. The smallest p-value counts, weighed for having looked five times. How
much such a difference scatters follows from the history (`evmperf.judge.spread`).

Nobody is believed who has not been seen to be right before. The same comparisons are made for the
nights of the history, each with what was known in it (an A/A), and

* where such differences had heavier tails than normal noise, tonight's are judged by these:
  Student's t, of which degrees and width are those that the lab's differences had;
* of several nights that are off one, two or three may be odd, of which the history has had so many;
* what a metric did twice before is its habit, and no change.

Differences that pass for normal noise only are `alone`: to be borne out by the nights to come.

The history begins at its last change point (`evmperf.judge.steps`), so that a change is looked
for until ten nights have it; then it is the level.

`python -m selftests.speed verdicts` measures all this.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evmperf.judge import spread, steps
from evmperf.judge.spread import FEWEST, REFERENCE, Before, Flags, Floats, Numbers
from evmperf.model import distributions as special

__all__ = ["FEWEST", "LEVEL", "Shift", "judge"]

LEVEL = 0.14
"""Share of false alarms, where nobody says otherwise."""
_WEIGHTS = {1: 0.03, 3: 0.58, 6: 0.03, 10: 0.24}
"""By how many of the last nights: share of the allowed false alarms; the slow test has the rest."""
_SLOW = 0.12
_NEWEST = max(_WEIGHTS)
"""Nights that nobody learns from: what is being looked for may be in them."""
_UNSETTLED = 6
"""Nights, beyond those of a new level, until it is history: a change may seem older than it is."""
_ENOUGH = 22
"""Nights of one level from which on the newest are left out of what is learnt."""
_SLOW_FROM = 2 * REFERENCE
"""Nights of one level before which nothing is slow."""
_REPLAYED = 40
"""Nights of the history that are judged again."""
LONGEST = 400
"""Nights of the history that count at all."""
_CALM = 0.75
"""How far off tonight may be, as a share of its own 95 % error, for earlier nights to vouch."""
_MOST_ODD = 3
_LARGEST = 37.0
_LEAST_P = 1e-300
"""What a normal distribution has at that many deviations, about."""
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
    which tonight, `lasting` that by which ten nights must be worse for an alarm.
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
    begins = steps.begins(rows, _UNSETTLED)
    rows[np.arange(rows.shape[1]) < begins[:, None]] = np.nan
    windows = _windows(rows, rows.shape[1] - begins)
    count = len(rows)
    alone = np.ones(count)
    p = np.ones(count)
    nights = np.ones(count, dtype=np.int64)
    centre, off, proven = np.zeros(count), np.zeros(count), np.full(count, np.inf)
    calm, tonight = np.ones(count, dtype=bool), np.zeros(count)
    seen, lasting = np.full(count, np.inf), np.full(count, np.inf)
    suspected = np.min([np.nan_to_num(_two_sided(w.far[:, -1]), nan=1.0) / w.weight for w in windows], axis=0)
    quiet = suspected > 3 * level / count
    if quiet.mean() < 0.5:
        quiet[:] = True
    for window in windows:
        known = np.isfinite(window.far[:, -1])
        weight = window.weight * _sided(window.far[:, -1], worse)
        plain = np.where(known, _two_sided(window.plain) / weight, 1.0)
        tail = _tail(window, quiet)
        careful = np.where(known, tail.p(window.far[:, -1]) / weight, 1.0)
        habit = _habit(window.reach, max(window.size, 1))
        careful = np.where(habit, 1.0, np.maximum(careful, plain))
        # What tonight does not bear out is no suspicion, but an odd night that is over.
        over = (window.size > 1) & (calm | (tonight * window.off < 0))
        alone = np.where(over, alone, np.minimum(alone, plain))
        # The first window says what the level is, whether or not anything is off.
        better = (careful < p) | (known & (window.size == 1))
        # Slow is only what no window that moves along has found.
        better &= (window.size > 0) | (p > level / count)
        p = np.where(better, np.minimum(careful, p), p)
        nights = np.where(better, window.size or window.since, nights)
        centre = np.where(better, window.level, centre)
        off = np.where(better, window.off, off)
        reach = window.error * tail.reach(level / count * window.weight)
        if window.size == 1:
            tonight = window.off
            seen = np.where(known, reach, seen)
        if 0 < window.size <= 3:  # as many as can be called tonight
            # Three nights prove nothing of tonight where tonight is itself far off.
            error = 1.96 * max(tail.width, 1.0) * window.error
            calm &= (window.size > 1) | (window.reach[:, -1] <= error * _CALM)
            sure = window.reach[:, -1] + error
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
            float(centre[i] * units[i] if units[i] else np.exp(centre[i])),
            _share(off[i], centre[i], units[i]),
            bool(slow[i]),
            _share(proven[i], centre[i], units[i]),
            *(abs(_share(v[i] * side, centre[i], units[i])) for v in (seen, lasting)),
        )
        for i, side in enumerate(-1 if side < 0 else 1 for side in worse or [1] * count)
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


def _share(value: float, centre: float, unit: float) -> float:
    """A difference as a share of the level."""
    if unit:
        return float(value / abs(centre)) if centre else float(value and np.inf)
    return float(np.expm1(np.clip(value, -700.0, 700.0)))


@dataclass(frozen=True)
class _Window:
    """One comparison: of tonight its level, difference and error, and how far from the level the nights are
    on either reckoning (`reach`: what is like the night before may still be far from the level) and how far
    off in normal deviations (`far`) in each night of the replay, tonight last; and tonight if no night is odd
    (`plain`). The slow one has size 0, and is `since` so many nights.
    """

    size: int
    weight: float
    level: Floats
    off: Floats
    error: Floats
    reach: Floats
    far: Floats
    plain: Floats
    since: Numbers | int = 0


def _windows(rows: Floats, lengths: Numbers) -> list[_Window]:
    total = rows.shape[1]
    learnt = rows[:, :-1].copy()
    learnt[lengths >= _ENOUGH, max(total - _NEWEST, 0) :] = np.nan
    memory = spread.memory(learnt)
    ends = np.arange(max(FEWEST, total - _REPLAYED - _NEWEST), total + 1)
    past = spread.before(rows, ends)
    restless = spread.restless(rows, _NEWEST)
    groups = [_groups(rows, nights, ends) for nights in _WEIGHTS if ends[0] + nights <= total]
    # What each model says, and the mean of that by how far each is believed.
    middles = np.zeros((len(_WEIGHTS), 4, len(rows), total - ends[0]))
    mean = np.zeros((len(_WEIGHTS), len(rows), total - ends[0] + 1))
    models = []
    for model, share in enumerate(memory.T):
        if (mine := share > 0).any():
            believed = share[mine, None]
            theirs = past if mine.all() else past.of(mine)
            found, off = _compared(groups, theirs, mine, model, restless)
            middles[:, :, mine] += believed * found
            mean[:, mine] += believed * off
            models.append((mine, believed, off))
    sign = np.where(mean > 0, 1, -1)
    chance = np.zeros(sign.shape)
    for mine, believed, off in models:
        chance[:, mine] += believed * special.ndtr(-sign[:, mine] * off)
    # The models may be of different minds: then the other side is the rare one.
    other = chance > 0.5
    rare = np.clip(np.where(other, 1 - chance, chance), _LEAST_P, 0.5)
    far = np.where(other, -sign, sign) * -special.ndtri(rare)
    windows = []
    for place, (nights, weight) in enumerate(_WEIGHTS.items()):
        if nights < far.shape[-1]:
            level, off, error, reach = middles[place]
            now = level[:, -1], off[:, -1], error[:, -1]
            each = far[place]
            windows.append(
                _Window(nights, weight, *now, reach[:, nights - 1 :], each[:, nights - 1 : -1], each[:, -1])
            )
    if (lengths >= _SLOW_FROM).any():
        windows.append(_slow(rows, lengths, memory))
    return windows


@dataclass(frozen=True)
class _Groups:
    """So many nights after each past, a row a metric; and the sums of those without the one, two or
    three that are highest, or lowest (axis 0; all of them first).
    """

    size: int
    nights: Floats
    low: Floats
    high: Floats


def _groups(rows: Floats, size: int, ends: Numbers) -> _Groups:
    nights = np.lib.stride_tricks.sliding_window_view(rows, size, axis=1)[:, int(ends[0]) :]
    ordered = np.sort(nights, axis=2)
    counts = range(min(size, _MOST_ODD + 1))
    low = np.stack([ordered[..., : size - count].sum(axis=2) for count in counts])
    high = np.stack([ordered[..., count:].sum(axis=2) for count in counts])
    return _Groups(size, nights, low, high)


def _compared(
    groups: Sequence[_Groups], past: Before, mine: Flags, model: int, restless: float
) -> tuple[Floats, Floats]:
    """By window: level, difference, its error, and reach; and how far off it is in normal deviations with
    odd nights, and in a last column tonight without. A row is a metric, a column a night; NaN where there
    are too few nights.
    """
    level, variance = past.level(model)
    squeezed, degrees = spread.squeezed(variance, np.maximum(past.count - 1.0, 1.0))
    spreads = np.sqrt(squeezed)
    spreads[:, -1 - _NEWEST :] *= restless
    found = np.full((len(_WEIGHTS), 4, len(level), past.count.shape[1] - 1), np.nan)
    normal = np.full((len(_WEIGHTS), len(level), past.count.shape[1]), np.nan)
    for place, group in enumerate(groups):
        nights = group.nights[mine]
        pasts = nights.shape[1]
        there, count = level[:, :pasts], past.count[:, :pasts]
        weights, factor = spread.differences(model, group.size)
        off = np.empty(count.shape)
        for column, counts in enumerate(count.T):
            known = weights[counts]
            kept = np.nan_to_num(past.kept[:, column])
            off[:, column] = np.einsum("rk,rk->r", kept, known[:, :REFERENCE])
            off[:, column] += np.einsum("rk,rk->r", nights[:, column], known[:, REFERENCE:])
        error = spreads[:, :pasts] * np.sqrt(factor[count])
        low, high = group.low[:, mine], group.high[:, mine]
        reach = np.maximum(np.abs(off), np.abs(low[0] / group.size - there))
        far = spread.normal(off / error, degrees[:, :pasts])
        lefts = group.size - np.arange(len(low))[:, None, None]
        sides = np.where(far > 0, low - lefts * there, lefts * there - high)
        careful = np.sign(far) * _without_odd(np.abs(far), sides, group.size, past.odd)
        found[place][:, :, -pasts:] = np.stack([there, off, error, reach])
        normal[place][:, -1 - pasts : -1], normal[place][:, -1] = careful, far[:, -1]
    return found, normal


def _without_odd(far: Floats, sides: Floats, nights: int, odd: Floats) -> Floats:
    """How far off groups of nights are if one, two or three of them are odd, which a share `odd` of a
    metric's nights are; `sides` are the sums of the nights' differences to the level, in the direction of
    the mean: of all, and without the one, two or three that are furthest.
    """
    whole = sides[0]
    for count in range(1, len(sides)):
        left = nights - count
        share = sides[count] / left / (np.where(whole, whole, 1.0) / nights)
        narrower = np.sqrt((1 / nights + 1 / REFERENCE) / (1 / left + 1 / REFERENCE))
        chance = math.comb(nights, count) * odd[:, None] ** count
        p = chance * special.ndtr(-np.minimum(far, _LARGEST) * share * narrower)
        far = np.fmin(far, -special.ndtri(np.clip(p, _LEAST_P, 0.5)))
    return np.asarray(far)


def _slow(rows: Floats, lengths: Numbers, memory: Floats) -> _Window:
    """The newest nights against the oldest of the same level."""
    total = rows.shape[1]
    level, off, error = np.full((3, len(rows)), np.nan)
    means = np.repeat([-1 / REFERENCE, 1 / REFERENCE], REFERENCE)
    for length in np.unique(lengths[lengths >= _SLOW_FROM]):
        mine = np.flatnonzero(lengths == length)
        parts = spread.before(rows[mine], np.array([total - length + REFERENCE, total]))
        places = np.r_[0:REFERENCE, length - REFERENCE : length]
        squares = np.zeros(len(mine))
        for model, share in enumerate(memory[mine].T):
            factor = means @ spread.together(model, int(length))[np.ix_(places, places)] @ means
            squares += share * parts.level(model)[1].mean(axis=1) * factor
        level[mine] = parts.kept[:, 0].mean(axis=1)
        off[mine] = parts.kept.reshape(len(mine), -1) @ means
        error[mine] = np.sqrt(squares)
    far = spread.normal(off / error, np.full(len(rows), 2.0 * REFERENCE - 2))
    return _Window(0, _SLOW, level, off, error, np.abs(off)[:, None], far[:, None], far, lengths - REFERENCE)


def _two_sided(deviation: Floats) -> Floats:
    return np.asarray(2 * special.ndtr(-np.abs(deviation)))


def _habit(reach: Floats, nights: int) -> Flags:
    """Whether a metric was twice before as far off as it is now, groups apart."""
    past = reach[:, :-1]
    past = past[:, : max(past.shape[1] + 1 - (_NEWEST if past.shape[1] > 2 * _NEWEST else nights), 0)]
    apart = np.sort(np.nan_to_num(past[:, ::-1][:, ::nights]), axis=1)
    if apart.shape[1] < 2:
        return np.zeros(len(reach), dtype=bool)
    return np.asarray(apart[:, -2] >= _AS_FAR * np.nan_to_num(reach[:, -1], nan=np.inf))


@dataclass(frozen=True)
class _Tail:
    """What the lab's differences were like when nobody suspected a change: Student's t."""

    degrees: float
    width: float
    past: Floats | None = None
    nights: int = 1
    """Groups that a night is in."""

    def p(self, far: Floats) -> Floats:
        """The probability of at least such a difference."""
        width = max(self.width, _LEAST_WIDTH)
        found = np.asarray(2 * special.stdtr(self.degrees, -np.abs(far) / width))
        if self.past is None:
            return found
        # What has been that far off before, but for one night, is no rarer than it was.
        further = len(self.past) - np.searchsorted(self.past, np.nan_to_num(np.abs(far)))
        return np.asarray(np.maximum(found, np.maximum(further - self.nights, 0) / len(self.past)))

    def reach(self, p: float) -> float:
        """The deviation of that probability."""
        return -float(min(special.ndtri(p / 2), self.width * special.stdtrit(self.degrees, p / 2)))


def _tail(window: _Window, quiet: Flags) -> _Tail:
    past = np.abs(window.far[quiet, :-1])
    if past.shape[1] > 2 * _NEWEST:
        past = past[:, :-_NEWEST]
    known = np.sort(past[np.isfinite(past)])
    if not len(known):
        return _Tail(float(_DEGREES[-1]), 1.0)
    if len(known) < 100:
        return _Tail(float(_DEGREES[-1]), 1.0, known, window.size)
    rare = _RARE / len(known)
    usual, far = np.quantile(known, [1 - _COMMON, 1 - rare])
    ratios = special.stdtrit(_DEGREES, rare / 2) / special.stdtrit(_DEGREES, _COMMON / 2)
    ratio = far / max(usual, 1e-9)
    if ratio < ratios[-1] * _CHANCE:
        return _Tail(float(_DEGREES[-1]), float(-usual / special.ndtri(_COMMON / 2)), known, window.size)
    degrees = float(np.exp(np.interp(-ratio, -ratios, np.log(_DEGREES))))
    return _Tail(degrees, float(-usual / special.stdtrit(degrees, _COMMON / 2)), known, window.size)
