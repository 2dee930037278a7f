"""Has a series of nights moved? The one test of a night against its history (docs/judging.md has the method).

Three nights are compared with the level before them, as if as many of them were odd as the metric has odd
nights; ten nights are ranked among those before them; thirty are compared with the oldest thirty of the same
level, for a loss too slow for the others. One night suffices where it is beyond all there was. How much such
differences scatter is not assumed: the same comparisons are made for the past nights (an A/A), and an alarm
must be rarer than those of the metric and of the lab. Nights on which the board as a whole was slow say
nothing of others: unless the newest are such, they are left out.

Rows of a matrix are metrics, columns nights, the newest last; NaN stands for no figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evmperf.judge import steps
from evmperf.judge.past import FEWEST, NEWEST, REFERENCE, PastNights, Window, levels
from evmperf.judge.steps import Floats, stacked
from evmperf.model import distributions as special

Flags = NDArray[np.bool_]

LEVEL = 0.03
"""Share of false alarms, where nobody says otherwise."""
LONGEST = 400
"""Nights of the history that count at all."""
_WINDOWS = {3: 0.65, 10: 0.15}
"""By how many of the last nights: share of the allowed false alarms; the slow test has the rest."""
_SLOW = 0.2
_UNSETTLED = 6
"""Nights, beyond those of a new level, until it is history: a change may seem older than it is."""
_WORSE = 0.95
"""Share of the allowed false alarms that are of something worse: nobody is woken by the rest."""
_BORNE_OUT = 0.5
"""The share of a window's difference that tonight must have: it is nearer to the new level."""
_AT_ONCE = 6.0
"""Spreads that, beyond the whole range of the history, one night suffices for."""
_FEW = 10
"""Nights before three or ten others from which these can be told apart."""
_AT_ONCE_FROM = 20
"""Nights that show how odd those of a lab are."""
_YOUNG = 5.0
"""How odd a night must be until then, in ranges of the history."""
_YOUNG_RANGES = 1.5
"""Ranges of fewer than _FEW nights that three nights in a row must each be away; of more, one."""
_ONE_OF = 50
"""Nights of which one may be called worse at once by chance."""
_TIMES, _MORE = 2, 5
"""One past night may be like no other: more than so many times the odd metrics of all the others, and so many
more, are no chance either. Factors of 1 to 2 do the same on recorded series; 3 finds less.
"""
_SLOWED = 1.0
"""Spreads by which a quarter of the metrics are worse on a night of a slow board, or what chance makes of
independent metrics, where that is more: with fewer than some 160.
"""
_UPPER_QUARTILE, _ITS_ERROR = 0.674, 1.363
"""Of normal values, in spreads. The error is the quartile's standard error, times the root of their number:
sqrt(3/16) over the density there (H. Cramer, Mathematical Methods of Statistics, 1946, 28.5).
"""
_LEAST = 0.05
"""What a loss of one night must have, as a share."""
_SLOW_SPREADS = 2.0
"""Spreads by which a metric is slow on a night that is slow as a whole."""
_SLOW_SHARE = 0.3
"""Share of the metrics, and of at least _COMMON, that are then slow."""
_COMMON = 20
_SURE = 1000.0
"""By how much more than needed three nights beyond all range are taken to be sure."""
SETTLED = 3
"""Such nights in a row that are no accident of board or lab."""


@dataclass(frozen=True)
class Shift:
    """What a series says: `p` for "nothing changed"; `nights` last ones are different from `level` (in the
    unit of the values), `off` by so much of it; `spread` is that of a night, as a share. `slow` is whether
    this took longer than any window, `at_once` whether one night is so far beyond
    anything before that it suffices, `odd` whether it is beyond that at all.

    `proven` is within what share of the level the newest nights are, at 95 %; `seen` the share by
    which tonight, `lasting` that by which ten nights must be worse for an alarm.
    """

    p: float
    nights: int
    level: float
    off: float
    spread: float
    slow: bool
    at_once: bool
    odd: bool
    proven: float
    seen: float
    lasting: float


def judge(
    series: Sequence[Sequence[float]],
    level: float = LEVEL,
    worse: Sequence[int] | None = None,
    alike: int = 0,
    *,
    one_night: bool = True,
) -> list[Shift]:
    """Judge each series, whose last value is the run in question; all must have FEWEST nights of
    history before it. `level` is the share of false alarms that `seen` is about, `worse` is 1 for
    each metric of which higher figures are worse, -1 for lower ones, 0 for neither. Nothing known differs
    between the `alike` newest nights and the night before each: if they are slow as a whole, the board is.
    `one_night` is whether a single night may decide.
    """
    rows, units = stacked(series, LONGEST)
    begins = steps.begins(rows, _UNSETTLED)
    rows[np.arange(rows.shape[1]) < begins[:, None]] = np.nan
    lengths = rows.shape[1] - begins
    count, all_nights = len(rows), rows
    sides = np.zeros(count) if worse is None else np.array(worse)
    slowed = _slowed(rows, sides)
    if slowed.any() and not slowed[-min(_WINDOWS) :].any():
        rows, slowed = _without(rows, slowed), np.zeros_like(slowed)
    past = PastNights(rows)
    windows = [past.window(size) for size in _WINDOWS if rows.shape[1] >= size + FEWEST]
    tonight = past.window(1)
    p, off, lasting = _tested(past, [tonight, *windows], sides, level)
    before, scatter, clear_off = _clear(rows)
    clear = np.isfinite(clear_off)
    p[clear], off[clear] = level / count / _SURE, clear_off[clear]
    odd = _odd(past, tonight, sides, slowed)
    seen = odd.limit * odd.least[:, -1]
    suspects = (odd.metrics & odd.unusual) | (odd.decided & (not one_night))
    at_once = odd.decided & one_night
    metrics = np.isfinite(tonight.off).sum(axis=0)
    slow = (tonight.off * sides[:, None] > _SLOW_SPREADS * past.spread).sum(axis=0) / np.maximum(
        metrics, _COMMON
    )
    if _unsettled(odd.slowed, alike):
        at_once = np.zeros(count, dtype=bool)
    if _unsettled(_newest_of(slow > _SLOW_SHARE), alike):
        at_once, p, clear = np.zeros(count, dtype=bool), np.ones(count), np.zeros(count, dtype=bool)
        suspects = odd.metrics & (slow[-1] > slow[:-1].max(initial=0.0))
    off = np.where((at_once | suspects) & (p > level / count), tonight.off[:, -1], off)
    p[at_once] = np.minimum(p, level / count)[at_once]
    known = np.isfinite(rows).sum(axis=1)
    oldest, slow_off, slow_far = _slow(rows, known, windows[-1].wider if windows else tonight.wider)
    slow_p = np.nan_to_num(2 * special.ndtr(-np.abs(slow_far)) / _SLOW / _sided(slow_off, sides), nan=1.0)
    is_slow = (slow_p < p) & (p > level / count)
    off, p = np.where(is_slow, slow_off, off), np.minimum(np.where(is_slow, slow_p, p), 1.0)
    centre = np.where(is_slow, oldest, np.where(clear, before, past.level[:, -1]))
    spread = np.where(clear, scatter, past.spread[:, -1])
    nights = np.where(is_slow, lengths - REFERENCE, _dated(all_nights, centre, off))
    proven = _proven([tonight, *windows])
    side = np.where(sides < 0, -1, 1)
    shares = [_share(value, centre, units) for value in (off, spread, proven, seen * side, lasting * side)]
    level_of = np.where(units > 0, centre * units, np.exp(centre))
    sizes = (shares[2], np.abs(shares[3]), np.abs(shares[4]))
    columns = (p, nights, level_of, *shares[:2], is_slow, at_once, suspects, *sizes)
    return [Shift(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _tested(
    past: PastNights, windows: Sequence[Window], sides: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """By three and ten nights: `p` for "nothing changed", the difference that is least likely, and what ten
    nights would show. The first window is tonight, which must bear a difference out.
    """
    tonight, count = windows[0].off[:, -1], len(sides)
    p, off, lasting = np.ones(count), tonight.copy(), np.full(count, np.inf)
    for window in windows[1:]:
        here, share = window.off[:, -1], _WINDOWS[window.size]
        p_here = 2 * special.ndtr(-np.abs(window.far[:, -1])) / share / _sided(here, sides)
        p_here = np.nan_to_num(p_here, nan=1.0)
        p_here[tonight * np.sign(here) < _BORNE_OUT * np.abs(here)] = 1.0
        p_here[past.count[:, window.far.shape[1] - 1] < _FEW] = 1.0
        off, p = np.where(p_here < p, here, off), np.minimum(p, p_here)
        deviations = -float(special.ndtri(level / count * share / 2))
        lasting = np.fmin(lasting, window.error[:, -1] * deviations)
    return p, off, lasting


def _newest_of(nights: Flags) -> int:
    """How many of the last nights are so in a row."""
    return int(np.append(nights[::-1], False).argmin())


def _unsettled(nights: int, alike: int) -> bool:
    """Whether so many slow nights may be an accident, as nothing known began with the first of them."""
    return 0 < nights < SETTLED and alike >= nights


def _share(value: Floats, centre: Floats, units: Floats) -> Floats:
    """Differences as shares of the level."""
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where(value == 0, 0.0, value / np.abs(centre))
    return np.where(units > 0, plain, np.expm1(np.clip(value, -700.0, 700.0)))


def _sided(off: Floats, sides: Floats) -> Floats:
    """By what to multiply the allowed false alarms: more on the side of what is worse."""
    return np.where(sides == 0, 1.0, np.where(sides * off > 0, 2 * _WORSE, 2 * (1 - _WORSE)))


def _slow(rows: Floats, lengths: NDArray[np.int64], wider: Floats) -> tuple[Floats, Floats, Floats]:
    """The newest nights against the oldest of the same level: that level, the difference, its deviation."""
    level, off, error = np.full((3, len(rows)), np.nan)
    for length in np.unique(lengths[lengths >= 2 * REFERENCE]):
        mine = np.flatnonzero(lengths == length)
        nights = rows[mine, rows.shape[1] - length :]
        (old, scatter, _), (new, other, _) = levels(nights[:, :REFERENCE]), levels(nights[:, -REFERENCE:])
        level[mine], off[mine], error[mine] = old, new - old, np.sqrt((scatter + other) / REFERENCE)
    return level, off, off / error / wider


@dataclass(frozen=True)
class _Odd:
    """Nights that are worse than the level by more than anything in their history is from anything else in
    it, _AT_ONCE spreads and _LEAST: `by` how many times that, a column a past night and tonight last.
    """

    by: Floats
    least: Floats
    """What `by` counts."""
    young: bool
    """Whether too few nights have shown how odd those of the lab are."""
    slowed: int
    """How many of the last nights in a row are of a slow board. These are too few for a share of chance."""

    def _often(self, nights: Floats) -> float:
        """The value of past nights that is exceeded by chance on one of _ONE_OF nights, or on none."""
        above = 0 if self.slowed or self.young else len(nights) // _ONE_OF
        return float(np.sort(nights)[-1 - above]) if len(nights) else 0.0

    @property
    def limit(self) -> float:
        """How odd at least one metric is by chance: the lab must have shown it."""
        return max(self._often(self.by[:, :-1].max(axis=0, initial=0.0)), _YOUNG if self.young else 1.0)

    @property
    def metrics(self) -> Flags:
        """Whether tonight is one, by metric."""
        return np.asarray(self.by[:, -1] > 1)

    @property
    def decided(self) -> Flags:
        """Whether tonight is so odd that not as many metrics are by chance."""
        tonight, past = self.by[:, -1], self.by[:, :-1]
        if self.young:
            return np.asarray(tonight > self.limit)
        least = np.inf
        for number, far in enumerate(np.sort(tonight[tonight > 1])[::-1], 1):
            counts = (past >= far).sum(axis=0)
            if number > self._often(counts) or (not self.slowed and _is_alone(number, counts)):
                least = far
        return np.asarray(tonight >= least)

    @property
    def unusual(self) -> bool:
        """Whether more metrics are odd than on any night before."""
        counts = (self.by > 1).sum(axis=0)
        return bool(counts[-1] > counts[:-1].max(initial=0))


def _is_alone(number: int, counts: NDArray[np.int64]) -> bool:
    """Whether tonight has far more odd metrics than all past nights but one."""
    return len(counts) >= _AT_ONCE_FROM and number > _TIMES * np.sort(counts)[-2] + _MORE


def _odd(past: PastNights, single: Window, sides: Floats, slowed: Flags) -> _Odd:
    """Tonight among the nights before it: nights of a slow board count only if tonight is one."""
    counting = slowed <= slowed[-1]
    nights = np.where(counting, past.rows, np.nan)
    nights = np.concatenate([np.full((len(nights), REFERENCE), np.nan), nights], axis=1)
    before = [nights[:, end : end + REFERENCE] for end in range(past.first, past.rows.shape[1])]
    # fmax and fmin, since a night may be missing
    span = np.stack([np.fmax.reduce(n, axis=1) - np.fmin.reduce(n, axis=1) for n in before], axis=1)
    count = np.stack([np.isfinite(n).sum(axis=1) for n in before], axis=1)
    least = np.fmax(span, _AT_ONCE * past.spread) * np.where(count < _FEW, 2.0, 1.0)
    least = np.maximum(least, _LEAST)
    worse = np.where((sides == 0)[:, None], np.abs(single.off), sides[:, None] * single.off)
    by = np.where(count >= FEWEST, np.nan_to_num(worse / least), 0.0)
    young = bool((by[:, :-1].max(axis=0, initial=0.0) > 0).sum() < _AT_ONCE_FROM)
    return _Odd(by[:, counting[past.first :]], least, young, _newest_of(slowed))


def _slowed(rows: Floats, sides: Floats) -> Flags:
    """On which nights the board was slow: a quarter of at least _COMMON metrics are _SLOWED spreads worse,
    without odd ones, or _SLOW_SHARE of them are odd.
    """
    level, variance, _ = levels(rows[:, -1 - REFERENCE : -1])
    worse = sides[:, None] * (rows - level[:, None]) / np.sqrt(variance)[:, None]
    worse[sides == 0] = np.nan
    odd, metrics = worse > _AT_ONCE, np.isfinite(worse).sum(axis=0)
    quarter = np.nan_to_num(steps.of_sorted(np.sort(np.where(odd, np.nan, worse).T, axis=1), 0.75))
    by_chance = _UPPER_QUARTILE + 3 * _ITS_ERROR / np.sqrt(np.maximum(metrics, 1))
    slowed = (quarter > np.maximum(_SLOWED, by_chance)) | (odd.sum(axis=0) > _SLOW_SHARE * metrics)
    return np.asarray(slowed & (metrics >= _COMMON))


def _without(rows: Floats, slowed: Flags) -> Floats:
    """The rows without nights of a slow board where enough others are left, each moved to its newest night:
    a night that does not count is no hole among those that do.
    """
    others = np.where(slowed, np.nan, rows)
    enough = np.isfinite(others[:, -1 - REFERENCE : -1]).sum(axis=1) >= _FEW
    kept = np.where(enough[:, None], others, rows)
    return np.asarray(np.take_along_axis(kept, np.argsort(np.isfinite(kept), axis=1, kind="stable"), axis=1))


def _clear(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Level and spread before the three newest nights, and how far these are from it where each is further
    than the whole range of the nights before (of few nights _YOUNG_RANGES times that) and _LEAST; else NaN.
    """
    old, new = rows[:, -REFERENCE - SETTLED : -SETTLED], rows[:, -SETTLED:]
    level, variance, count = levels(old)
    off = new - level[:, None]
    middle = np.median(off, axis=1)
    nearest = (off * np.sign(middle)[:, None]).min(axis=1)
    span = np.fmax.reduce(old, axis=1, initial=-np.inf) - np.fmin.reduce(old, axis=1, initial=np.inf)
    far = nearest > np.maximum(np.where(count < _FEW, _YOUNG_RANGES, 1.0) * span, _LEAST)
    return level, np.sqrt(variance), np.where(far & (count >= FEWEST), middle, np.nan)


def _dated(rows: Floats, level: Floats, change: Floats) -> NDArray[np.int64]:
    """Of how many of the last nights the mean is furthest from a level, in deviations: since when
    it is another. An odd night counts as no further away than tonight, or the change.
    """
    off = np.nan_to_num(rows[:, ::-1][:, :NEWEST] - level[:, None])
    most = np.maximum(np.abs(change), np.abs(off[:, 0]))[:, None]
    off = np.clip(off, -most, most)
    counts = np.arange(1, off.shape[1] + 1)
    return np.asarray(np.abs(off.cumsum(axis=1) / np.sqrt(counts)).argmax(axis=1) + 1)


def _proven(windows: Sequence[Window]) -> Floats:
    """How far from the level the newest nights are at most, 19 times of 20; three nights prove nothing of
    tonight where tonight is itself far off.
    """
    sure = [np.abs(w.off[:, -1]) + 1.96 * w.error[:, -1] for w in windows[:2]]
    calm = np.abs(windows[0].off[:, -1]) <= 1.5 * windows[0].error[:, -1]
    return np.where(calm, np.fmin(*sure), sure[0]) if len(sure) > 1 else sure[0]
