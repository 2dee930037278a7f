"""How much the figures of a lab scatter from night to night: the one model of spread.

Rows of a matrix are metrics, columns nights, the newest last; NaN stands for no figure. Figures are
logarithms, so that a spread is relative; what can be zero or negative is in units of its median.

level and variance   of the nights before one, winsorised at 3.5 spreads, which are the width of the
                     middle 70 % (two levels are noise, one odd night in thirty is not)
squeezed             variances of few nights are drawn towards that of the lab's metrics, as far as
                     these agree (G. K. Smyth, Statistical Applications in Genetics 3, 2004)
variogram            by how much nights differ that are 1, 2, 3, ... nights apart (G. Matheron,
                     Economic Geology 58, 1963): flat for independent nights, rising where nights
                     are alike, wander or drift. The variance of any comparison of two groups of
                     nights follows from it. Each metric has its own as far as the first half of
                     the metrics' histories foretells the second, else that of the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEWEST = 5
"""Nights below which a series has no level."""
REFERENCE = 30
"""Nights that a level is taken from."""
RESOLUTION = 1e-3
"""Relative spread below which a series counts as quantised: it never has less."""
_LAGS = REFERENCE + 10
_USED = 70
"""Nights that the variogram is of."""
_CLIP = 3.5
_FAR = 4.0
_MOST_DEGREES = 1000.0


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
    last = np.maximum(count, 1) - 1

    def quantile(share: float) -> Floats:
        place = share * last
        low = place.astype(np.int64)
        near, far = (
            np.take_along_axis(ordered, index[..., None], -1)[..., 0]
            for index in (low, np.minimum(low + 1, last))
        )
        return np.asarray(near + (place - low) * (far - near))

    middle = quantile(0.5)
    reach = _CLIP * np.maximum((quantile(0.85) - quantile(0.15)) / 2.073, RESOLUTION)
    kept = np.clip(ordered, (middle - reach)[..., None], (middle + reach)[..., None])
    enough = count >= FEWEST
    mean = np.nansum(kept, axis=-1) / np.where(enough, count, np.nan)
    off = np.nansum((kept - mean[..., None]) ** 2, axis=-1)
    variance = np.maximum(off / np.where(enough, count - 1, np.nan), RESOLUTION**2)
    return mean, variance, count


def before(rows: Floats, ends: Numbers) -> tuple[Floats, Floats, Numbers]:
    """The same of the REFERENCE nights before each of some columns."""
    padded = np.concatenate([np.full((len(rows), REFERENCE), np.nan), rows], axis=1)
    return levels(np.lib.stride_tricks.sliding_window_view(padded, REFERENCE, axis=1)[:, ends])


def squeezed(variance: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Variances of one night's metrics and their degrees of freedom, drawn towards each other."""
    known = np.isfinite(variance)
    if known.sum() < 2 * FEWEST:
        return variance, degrees
    half = degrees[known] / 2
    logarithms = np.log(variance[known]) - special.digamma(half) + np.log(half)
    between = logarithms.var(ddof=1) - special.polygamma(1, half).mean()
    prior = _MOST_DEGREES
    middle = logarithms.mean()
    if between > 2 / _MOST_DEGREES:
        prior = 2 * _trigamma_inverse(between)
        middle += special.digamma(prior / 2) - np.log(prior / 2)
    together = (prior * np.exp(middle) + degrees * variance) / (prior + degrees)
    return together, degrees + prior


def _trigamma_inverse(value: float) -> float:
    found: Any = 0.5 + 1 / value
    for _ in range(20):
        trigamma = special.polygamma(1, found)
        found += trigamma * (1 - trigamma / value) / special.polygamma(2, found)
    return float(found)


def variogram(rows: Floats, variance: Floats, lags: Sequence[int]) -> Floats:
    """Half the mean square difference of nights so far apart, as a share of the variance."""
    far = 2 * _FAR**2 * variance[:, None]
    found = np.full((len(rows), len(lags)), np.nan)
    for place, lag in enumerate(lags):
        squares = np.minimum((rows[:, lag:] - rows[:, :-lag]) ** 2, far)
        pairs = (~np.isnan(squares)).sum(axis=1)
        sums = np.nansum(squares, axis=1)
        found[:, place] = sums / np.where(pairs, pairs, np.nan) / 2 / variance
    return found


def weights(newer: int, older: int, between: int = 0) -> Floats:
    """By lag: how much each value of a variogram counts in the variance of the mean of `newer`
    nights against that of `older`, `between` nights before.
    """
    shares = np.concatenate([np.full(older, -1 / older), np.zeros(between), np.full(newer, 1 / newer)])
    size = 2 * len(shares)
    spectrum = np.abs(np.fft.rfft(shares, size)) ** 2
    return np.asarray(-2 * np.fft.irfft(spectrum, size)[1 : len(shares)])


@dataclass(frozen=True)
class Memory:
    """What nights know of those before: variograms of the lab and of each metric, and how far the
    latter are believed (0 to 1).
    """

    lab: Floats
    own: Floats
    belief: float

    def factor(self, newer: int, older: int) -> Floats:
        """The variance of the mean of `newer` nights less that of the `older` before them, a row a
        metric, for a variance of 1.
        """
        independent = 1 / newer + 1 / older
        share = weights(newer, older)[:_LAGS]
        lab = max(float(self.lab[: len(share)] @ share), independent)
        own = np.maximum(self.own[:, : len(share)] @ share, independent / 2)
        mixed = np.exp((1 - self.belief) * np.log(lab) + self.belief * np.log(own))
        return np.asarray(np.maximum(mixed, independent))


def memory(rows: Floats) -> tuple[Memory, Floats]:
    """The memory of a lab, from nights in which nobody suspects a change, and their variance."""
    rows = rows[:, -_USED:]
    _, variance, count = levels(rows)
    variance = np.where(np.isfinite(variance), variance, np.nanmedian(variance))
    usual = int(np.median(count))
    lags = range(1, max(2, min(_LAGS, usual - FEWEST + 1, rows.shape[1] - 1)) + 1)
    own = variogram(rows, variance, lags)
    told = np.isfinite(own)
    lab = np.where(told, own, 0.0).sum(axis=0) / np.maximum(told.sum(axis=0), 1)
    own = np.where(told, own, lab)
    missing = _LAGS - len(lab)
    carried = np.concatenate([own, np.repeat(own[:, -1:], max(missing, 0), axis=1)], axis=1)
    lab = np.concatenate([lab, np.full(max(missing, 0), lab[-1])])
    return Memory(lab, carried, _belief(rows, variance, usual)), variance


def _belief(rows: Floats, variance: Floats, usual: int) -> float:
    """How well the first halves of the histories foretell the second: the share of the variance
    of the metrics' variograms that is theirs, not chance (Spearman and Brown, 1910).
    """
    half = usual // 2
    present = np.flatnonzero((~np.isnan(rows)).sum(axis=0) * 2 > len(rows))
    if half < FEWEST + 2 or len(present) < 2 * half:
        return 0.0
    older, newer = (_rise(rows[:, part], variance) for part in (present[:half], present[half : 2 * half]))
    known = np.isfinite(older) & np.isfinite(newer)
    if known.sum() < 2 * FEWEST:
        return 0.0
    spread = np.cov(older[known], newer[known])
    shared = max(float(spread[0, 1]), 0.0)
    return min(2 * shared / (float(np.trace(spread)) / 2 + shared or 1.0), 1.0)


def _rise(rows: Floats, variance: Floats) -> Floats:
    """The logarithm of how much more distant nights differ than neighbours."""
    found = np.maximum(variogram(rows, variance, (1, 2, 3, 4)), 1e-3)
    return np.asarray(np.log(found[:, 1:].mean(axis=1) / found[:, 0]))
