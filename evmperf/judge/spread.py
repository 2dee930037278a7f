"""How much the figures of a lab scatter from night to night: the one model of spread.

Rows of a matrix are metrics, columns nights, the newest last; NaN stands for no figure. Figures are
logarithms, so that a spread is relative; what can be zero or negative is in units of its median.

kept       odd nights count as less far: 3.5 spreads, which are the width of the middle 70 % (two levels
           are noise, one odd night in thirty is not); how many there are is known
memory     nights are like those before: a share of the variance is an autoregression of first order.
           Each of the models is believed as far as its restricted likelihood (H. D. Patterson, R.
           Thompson, Biometrika 58, 1971) for the metric, and for the lab's others, says (empirical
           Bayes; B. Efron, Large-Scale Inference, 2010): the p-value is the mean of the models'
level      and differences of levels, and their variance, by generalised least squares
squeezed   variances of few nights are drawn towards that of the lab's metrics, as far as these agree
           (G. K. Smyth, Statistical Applications in Genetics 3, 2004)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evmperf.model import distributions as special

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEWEST = 5
"""Nights below which a series has no level."""
REFERENCE = 30
"""Nights that a level is taken from."""
RESOLUTION = 1e-3
"""Relative spread below which a series counts as quantised: it never has less."""
_USED = 120
"""Nights that tell how alike nights are."""
_MODELS = [(0.0, 0.0), *itertools.product((0.5, 1.0), (0.3, 0.6, 0.85, 0.97))]
"""How alike nights may be: a share of the variance is remembered, and of that such a part a night
later (an autoregression of first order with noise of each night).
"""
_PRIOR = np.array([0.5, *[0.5 / (len(_MODELS) - 1)] * (len(_MODELS) - 1)])
"""What is believed before anything is known: as likely independent nights as any others."""
_DOUBT = 1.0
"""Metrics' worth of doubt that a lab is as its metrics say: few metrics do not tell."""
_ROUNDS = 50
_CERTAIN = 2e-3
"""Likelihood of a model below which it is none."""
_CLIP = 3.5
_ODD_BY_CHANCE = float(2 * special.ndtr(-_CLIP))
_MOST_DEGREES = 1000.0
_CONVERGED = 1e-14
_LEVEL_NIGHTS = 3
"""Nights that either level of a step has, at least."""
_PLAIN = 0.8
"""The share of the scatter that a step must be to be no part of the spread; of a drift it is 0.75."""


def stacked(series: Sequence[Sequence[float]], longest: int) -> tuple[Floats, Floats]:
    """The series as rows, and a factor a row that restores the unit (0 for rows of logarithms)."""
    length = min(max(map(len, series)), longest)
    rows = np.full((len(series), length), np.nan)
    units = np.zeros(len(series))
    for index, given in enumerate(series):
        values = np.asarray(given, dtype=np.float64)[-length:]
        if (values > 0).all():
            values = np.log(values)
        else:
            units[index] = np.median(np.abs(values)) or 1.0
            values = values / units[index]
        rows[index, length - len(values) :] = values
    return rows, units


def levels(rows: Floats) -> tuple[Floats, Floats, Numbers]:
    """Level and variance along the last axis, and of how many nights; NaN for fewer than FEWEST."""
    ordered = np.sort(rows, axis=-1)
    count = (~np.isnan(ordered)).sum(axis=-1)
    low, middle, high = (_of_sorted(ordered, share) for share in (0.15, 0.5, 0.85))
    reach = _CLIP * np.maximum((high - low) / 2.073, RESOLUTION)
    kept = np.clip(ordered, (middle - reach)[..., None], (middle + reach)[..., None])
    enough = count >= FEWEST
    mean = np.nansum(kept, axis=-1) / np.where(enough, count, np.nan)
    off = np.nansum((kept - mean[..., None]) ** 2, axis=-1)
    variance = np.maximum(off / np.where(enough, count - 1, np.nan), RESOLUTION**2)
    return mean, variance, count


def quantile(rows: Floats, share: float) -> Floats:
    """That of each row's known values (numpy's nanquantile, for all rows together)."""
    return _of_sorted(np.sort(rows, axis=-1), share)


def _of_sorted(ordered: Floats, share: float) -> Floats:
    last = np.maximum((~np.isnan(ordered)).sum(axis=-1), 1) - 1
    place = share * last
    low = place.astype(np.int64)
    near, far = (
        np.take_along_axis(ordered, index[..., None], -1)[..., 0]
        for index in (low, np.minimum(low + 1, last))
    )
    return np.asarray(near + (place - low) * (far - near))


@dataclass(frozen=True)
class Before:
    """Of the REFERENCE nights before each of some columns: how many there are, and those nights, odd
    ones nearer to the others; what share of each metric's nights is odd; and how the nights scatter
    about their level, or about two levels where a step is plain.
    """

    count: Numbers
    kept: Floats
    odd: Floats
    flat: Floats

    def of(self, rows: Flags) -> Before:
        """That of some metrics."""
        return Before(self.count[rows], self.kept[rows], self.odd[rows], self.flat[rows])

    def level(self, model: int) -> tuple[Floats, Floats]:
        """Level and variance if nights are alike as a model says (generalised least squares: a night
        tells the less, the more it is like its neighbours).
        """
        found = np.full((2, *self.count.shape), np.nan)
        for place, counts in enumerate(self.count.T):  # see `before`
            for nights in np.unique(counts[counts >= FEWEST]):
                here = counts == nights
                weights, form = _of_level(model, int(nights))
                found[0, here, place] = self.kept[here, place, REFERENCE - nights :] @ weights
                values = self.flat[here, place, REFERENCE - nights :]
                found[1, here, place] = np.maximum(((values @ form) * values).sum(axis=1), RESOLUTION**2)
        return found[0], found[1]


def before(rows: Floats, ends: Numbers) -> Before:
    """What is known of the nights before each of some columns."""
    padded = np.concatenate([np.full((len(rows), REFERENCE), np.nan), rows], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, REFERENCE, axis=1)
    count = np.empty((len(rows), len(ends)), dtype=np.int64)
    kept, flat = np.empty((2, len(rows), len(ends), REFERENCE))
    for place, end in enumerate(ends):  # one by one: the intermediate arrays are large
        nights = windows[:, end]
        level, variance, count[:, place] = levels(nights)
        reach = _CLIP * np.sqrt(variance)
        kept[:, place] = np.clip(nights, (level - reach)[:, None], (level + reach)[:, None])
        flat[:, place] = _flat(kept[:, place], count[:, place])
    odd = _odd((kept[:, -1] != nights) & ~np.isnan(kept[:, -1]), count[:, -1])
    return Before(count, kept, odd, flat)


def _flat(kept: Floats, count: Numbers) -> Floats:
    """Nights less their mean, and less a step that is most of their scatter."""
    off = np.nan_to_num(kept - (np.nansum(kept, axis=-1) / np.maximum(count, 1))[..., None])
    newer = np.arange(_LEVEL_NIGHTS, REFERENCE)
    older = np.maximum(count[..., None] - newer, 0)
    sums = off[..., ::-1].cumsum(axis=-1)[..., newer - 1]
    heights = sums * count[..., None] / newer / np.maximum(older, 1)
    explained = np.where(older >= _LEVEL_NIGHTS, sums * heights, 0.0)
    best = explained.argmax(axis=-1)[..., None]
    plain = np.take_along_axis(explained, best, -1) > _PLAIN * (off**2).sum(axis=-1, keepdims=True)
    height = np.where(plain, np.take_along_axis(heights, best, -1), 0.0)
    return np.asarray(off - np.where(np.arange(REFERENCE)[::-1] < newer[best], height, 0.0))


@functools.cache
def _of_level(model: int, nights: int) -> tuple[Floats, Floats]:
    """By how much each of some nights counts for their level, and the quadratic form that makes the
    variance of a night of them.
    """
    inverse = np.linalg.inv(together(model, nights))
    sums = inverse.sum(axis=1)
    return sums / sums.sum(), (inverse - np.outer(sums, sums) / sums.sum()) / (nights - 1)


@functools.cache
def differences(model: int, newer: int) -> tuple[Floats, Floats]:
    """The same of the last `newer` nights less those before them, by how many these are (at most
    REFERENCE): weights, and the variance of that difference in units of a night's.
    """
    weights = np.full((REFERENCE + 1, REFERENCE + newer), np.nan)
    factor = np.full(REFERENCE + 1, np.nan)
    for older in range(FEWEST, REFERENCE + 1):
        nights = np.arange(older + newer)
        design = np.stack([np.ones(len(nights)), nights >= older], axis=1)
        weighed = np.linalg.solve(together(model, len(nights)), design)
        found = np.linalg.inv(design.T @ weighed)
        weights[older] = 0.0
        weights[older, REFERENCE - older :], factor[older] = (weighed @ found)[:, 1], found[1, 1]
    return weights, factor


def together(model: int, nights: int) -> Floats:
    """The correlations of so many nights with each other."""
    share, forgotten = _MODELS[model]
    apart = np.abs(np.subtract.outer(np.arange(nights), np.arange(nights)))
    return np.asarray(np.where(apart, share * forgotten**apart, 1.0))


def restless(rows: Floats, newest: int) -> float:
    """By how much more the newest nights differ from their neighbours than those before did, in the
    median of the metrics; a step is one difference among many, an odd night two.
    """
    steps = np.abs(np.diff(rows, axis=1))
    new, old = steps[:, -newest:], steps[:, -newest - REFERENCE : -newest]
    known = (np.isfinite(old).sum(axis=1) >= FEWEST) & np.isfinite(new).all(axis=1)
    if not known.any():
        return 1.0
    usual = np.maximum(np.nanmedian(old[known], axis=1), RESOLUTION)
    return max(float(np.median(new[known] / usual[:, None])), 1.0)


def normal(off: Floats, degrees: Floats) -> Floats:
    """Student's t as a normal deviation of the same probability, within 0.02 for five degrees and more
    (D. L. Wallace, Annals of Mathematical Statistics 30, 1959).
    """
    scale = (8 * degrees + 1) / (8 * degrees + 3)
    return np.asarray(np.sign(off) * scale * np.sqrt(degrees * np.log1p(off**2 / degrees)))


def _odd(cut: Flags, counts: Numbers) -> Floats:
    """The share of odd nights of each metric, as if it had had as many nights more with that of the
    lab; normal noise has none.
    """
    lab = max(cut.sum() / max(counts.sum(), 1) - _ODD_BY_CHANCE, 0.0)
    return np.asarray((cut.sum(axis=1) + REFERENCE * lab) / (counts + REFERENCE))


def squeezed(variance: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Variances of metrics, a column a night, and their degrees of freedom, drawn towards each other."""
    known = np.isfinite(variance)
    enough = known.sum(axis=0) >= 2 * FEWEST
    half = np.where(known, degrees, np.nan)[:, enough] / 2
    logarithms = np.log(variance[:, enough]) - special.digamma(half) + np.log(half)
    between = np.nanvar(logarithms, axis=0, ddof=1) - np.nanmean(special.zeta(2, half), axis=0)
    half_prior = np.where(
        between > 2 / _MOST_DEGREES,
        _trigamma_inverse(np.maximum(between, 2 / _MOST_DEGREES)),
        _MOST_DEGREES / 2,
    )
    middle = np.nanmean(logarithms, axis=0)
    middle = middle + np.where(
        between > 2 / _MOST_DEGREES, special.digamma(half_prior) - np.log(half_prior), 0.0
    )
    prior = np.zeros(variance.shape[1])
    centre = np.zeros(variance.shape[1])
    prior[enough], centre[enough] = 2 * half_prior, np.exp(middle)
    return (prior * centre + degrees * variance) / (prior + degrees), degrees + prior


def _trigamma_inverse(values: Floats) -> Floats:
    """By Newton's method (Smyth's appendix)."""
    found = 0.5 + 1 / values
    for _ in range(8):
        trigamma = special.zeta(2, found)
        step = trigamma * (1 - trigamma / values) / (-2 * special.zeta(3, found))
        found = found + step
        if (np.abs(step) <= _CONVERGED * found).all():
            break
    return np.asarray(found)


def variogram(rows: Floats, variance: Floats, lags: Sequence[int]) -> Floats:
    """Half the mean square difference of nights so far apart, as a share of the variance."""
    far = 2 * _CLIP**2 * variance[:, None]
    found = np.full((len(rows), len(lags)), np.nan)
    for place, lag in enumerate(lags):
        squares = np.minimum((rows[:, lag:] - rows[:, :-lag]) ** 2, far)
        pairs = (~np.isnan(squares)).sum(axis=1)
        sums = np.nansum(squares, axis=1)
        found[:, place] = sums / np.where(pairs, pairs, np.nan) / 2 / variance
    return found


def memory(rows: Floats) -> Floats:
    """How likely each model is for each metric, from nights in which nobody suspects a change: in
    proportion to the likelihood that it has for the metric (restricted, so that level and slope
    cost no evidence) and to how many of the lab's metrics it fits (empirical Bayes).
    """
    likely = np.zeros((len(rows), len(_MODELS)))
    begins = np.isnan(rows).argmin(axis=1)
    counts = (~np.isnan(rows)).sum(axis=1)
    used = np.minimum(counts, _USED)
    used -= np.where(used > 2 * REFERENCE, used % 10, 0)
    for count in np.unique(used[used > FEWEST]):
        mine = np.flatnonzero(used == count)
        first = (begins + counts)[mine] - count
        values = rows[mine[:, None], first[:, None] + np.arange(count)]
        likely[mine] = _likelihoods(values)
    odds = np.exp(likely - likely.max(axis=1, keepdims=True))
    prior = _PRIOR
    for _ in range(_ROUNDS):
        shares = odds * prior
        shares /= shares.sum(axis=1, keepdims=True)
        prior = (shares.sum(axis=0) + _DOUBT * _PRIOR) / (len(rows) + _DOUBT)
    shares[shares < _CERTAIN] = 0.0
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _likelihoods(values: Floats) -> Floats:
    """The logarithms, for each model; values that are far from the others count as less far."""
    mean, variance, _ = levels(values)
    reach = _CLIP * np.sqrt(variance)
    values = np.clip(values, (mean - reach)[:, None], (mean + reach)[:, None])
    count = values.shape[1]
    found = np.empty((len(values), len(_MODELS)))
    for model in range(len(_MODELS)):
        whiten, volume = _of_likelihood(model, count)
        squares = np.maximum(((values @ whiten) ** 2).sum(axis=1), count * RESOLUTION**2)
        found[:, model] = -volume - (count - 2) / 2 * np.log(squares)
    return found


@functools.cache
def _of_likelihood(model: int, count: int) -> tuple[Floats, float]:
    """What makes independent residuals of so many nights, level and slope taken out; and half the
    logarithm of the determinants of the nights' correlation and of what is known of both.
    """
    root = np.linalg.cholesky(together(model, count))
    white = np.linalg.inv(root)
    base, steep = np.linalg.qr(white @ np.stack([np.ones(count), np.linspace(-1, 1, count)], axis=1))
    volume = np.log(np.abs(np.diag(root))).sum() + np.log(np.abs(np.diag(steep))).sum()
    return np.asarray((white - base @ (base.T @ white)).T), float(volume)
