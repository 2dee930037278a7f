"""The nights before each night of a series: their level and spread, and how far the newest are from it.

Rows of a matrix are metrics, columns nights, the newest last; NaN stands for no figure.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evmperf.judge import steps
from evmperf.judge.steps import RESOLUTION, Floats, Numbers
from evmperf.model import distributions as special

FEWEST = 5
"""Nights below which a series has no level."""
REFERENCE = 30
"""Nights that a level is taken from."""
_MEDIAN_VARIANCE = {1: 1.0, 3: 0.4487, 10: 0.1383}
"""Variance of the median of so many normal values (H. L. Harter, Biometrika 48, 1961)."""
NEWEST = 10
"""Nights that nobody learns from: what is being looked for may be in them."""
_ENOUGH = 22
"""Nights of one level from which on the newest are left out of what is learnt."""
_RANKED = 60
"""Nights that the newest are ranked among."""
_REPLAYED = 40
"""Nights of the history that are judged again."""
_CLIP = 3.5
"""Spreads at which an odd night counts as no further away."""
_PRIOR_GROUPS = 5.0
"""Groups of nights as many as which the lab tells of how alike a metric's nights are."""
_AS_FAR = 0.75
"""The share of a difference that is as good as the whole, for a habit."""


@dataclass(frozen=True)
class Window:
    """One comparison, a column a past night and tonight last: differences, their standard errors, and how
    many of these they are.
    """

    size: int
    off: Floats
    error: Floats
    far: Floats
    wider: Floats
    """By how much the metric's nights scatter more than independent ones would."""


class PastNights:
    """Level and spread of the nights before each of the last columns, and before tonight."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.first = max(FEWEST, rows.shape[1] - 1 - _REPLAYED - NEWEST)
        padded = np.concatenate([np.full((len(rows), REFERENCE), np.nan), rows], axis=1)
        parts = [levels(padded[:, end : end + REFERENCE]) for end in range(self.first, rows.shape[1])]
        self.level, variance, self.count = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
        self.spread, self.degrees = np.sqrt(variance), np.maximum(self.count - 1.0, 1.0)

    def window(self, size: int) -> Window:
        """The last nights of that number against those before them."""
        nights = np.lib.stride_tricks.sliding_window_view(self.rows[:, self.first :], size, axis=1)
        columns = nights.shape[1]
        level, spread, count = (part[:, :columns] for part in (self.level, self.spread, self.count))
        off = np.median(nights, axis=2) - level
        error = spread * np.sqrt(_MEDIAN_VARIANCE[size] + 1 / np.maximum(count, 1))
        if size <= 3:
            far = self._if_odd(nights, level, spread, count)
        else:
            far = np.stack([self._ranked(nights[:, n], self.first + n) for n in range(columns)], axis=1)
        # How alike nights are shows in how the same comparison scattered before; the lab's metrics tell, too.
        past = far[:, : columns - NEWEST if columns > 2 * NEWEST else columns - 1]
        squares = np.minimum(past**2, _CLIP**2)
        groups = np.isfinite(past).sum(axis=1) / size
        own = np.nansum(squares, axis=1) / size
        lab = own.sum() / max(groups.sum(), 1.0) if groups.sum() else 1.0
        wider = np.sqrt(np.maximum((own + _PRIOR_GROUPS * max(lab, 1.0)) / (groups + _PRIOR_GROUPS), 1.0))
        return Window(size, off, error * wider[:, None], far / wider[:, None], wider)

    def _if_odd(self, nights: Floats, level: Floats, spread: Floats, count: Numbers) -> Floats:
        """The deviation of some nights from a level, if as many of them are odd as makes it the least."""
        columns, size = nights.shape[1:]
        off = np.sort(nights - level[..., None], axis=2)
        up = off.mean(axis=2) > 0
        nearest = np.where(up[..., None], off, -off[..., ::-1])
        odd, degrees = self._odd_share(_AS_FAR * nearest.mean(axis=2)), self.degrees[:, :columns]
        p = odd**size if size > 1 else np.zeros(count.shape)
        for kept in range(1, size + 1):
            error = spread * np.sqrt(1 / kept + 1 / np.maximum(count, 1))
            far = _normal(nearest[..., :kept].mean(axis=2) / error, degrees)
            p = np.maximum(p, math.comb(size, kept) * odd ** (size - kept) * special.ndtr(-far))
        return np.asarray(np.where(up, 1, -1) * -special.ndtri(np.clip(p, 1e-300, 0.5)))

    def _odd_share(self, off: Floats) -> Floats:
        """What share of a metric's nights is so far from its level: of its own, and of as many more of the
        lab's, in spreads.
        """
        total = self.rows.shape[1]
        nights = self.rows[:, : -NEWEST if total > _ENOUGH else -3]
        away = np.abs(nights - self.level[:, -1:]) / self.spread[:, -1:]
        reach = off / self.spread[:, -1:]
        lab = np.sort(away[np.isfinite(away)])
        further = len(lab) - np.searchsorted(lab, reach)
        ordered = np.sort(away, axis=1)
        own = np.stack([(ordered >= column[:, None]).sum(axis=1) for column in reach.T], axis=1)
        # A night of the past does not vouch for itself.
        own = np.maximum(own - (np.arange(reach.shape[1]) < nights.shape[1] - self.first), 0)
        count = np.isfinite(nights).sum(axis=1)[:, None]
        share = (own + REFERENCE * further / max(len(lab), 1)) / (count + REFERENCE)
        # Who was seen on few nights may have odd ones that it has not shown.
        return np.asarray(np.maximum(share, 0.5 / (count + 1)))

    def _ranked(self, nights: Floats, end: int) -> Floats:
        """Mann and Whitney's test of some nights against those before a column, as a normal deviation."""
        before = self.rows[:, max(end - _RANKED, 0) : end]
        differences = nights[:, :, None] - before[:, None, :]
        above = (differences > 0).sum(axis=(1, 2)) + (differences == 0).sum(axis=(1, 2)) / 2
        count = np.isfinite(before).sum(axis=1)
        deviations = np.full(len(nights), np.nan)
        for number in np.unique(count[count >= FEWEST]):
            mine = count == number
            at_least = _above(nights.shape[1], int(number))
            high = at_least[np.floor(above[mine]).astype(int)]
            low = at_least[np.floor(nights.shape[1] * number - above[mine]).astype(int)]
            deviations[mine] = np.where(
                high < low, -special.ndtri(np.minimum(high, 0.5)), special.ndtri(np.minimum(low, 0.5))
            )
        return deviations


@functools.cache
def _above(newer: int, older: int) -> Floats:
    """The probability that so many pairs or more have the newer value above, by that number, if all values
    are of one distribution, whatever it is (H. B. Mann, D. R. Whitney, Annals of Mathematical Statistics
    18, 1947: their recurrence).
    """
    ways = {(0, n): np.ones(1) for n in range(older + 1)}
    for m in range(1, newer + 1):
        ways[m, 0] = np.ones(1)
        for n in range(1, older + 1):
            ways[m, n] = np.zeros(m * n + 1)
            ways[m, n][n:] += ways[m - 1, n]
            ways[m, n][: m * (n - 1) + 1] += ways[m, n - 1]
    counts = ways[newer, older]
    return np.asarray(counts[::-1].cumsum()[::-1] / counts.sum())


def levels(nights: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Level and variance along the last axis, odd nights nearer to the others (3.5 times the width of the
    middle 70 %: two levels are noise, one odd night in thirty is not); and of how many nights. NaN for
    fewer than FEWEST.
    """
    ordered = np.sort(nights, axis=-1)
    count = (~np.isnan(ordered)).sum(axis=-1)
    low, middle, high = (steps.of_sorted(ordered, share) for share in (0.15, 0.5, 0.85))
    reach = _CLIP * np.maximum((high - low) / 2.073, RESOLUTION)
    kept = np.clip(ordered, (middle - reach)[..., None], (middle + reach)[..., None])
    nights_kept = np.where(count >= FEWEST, count, np.nan)
    mean = np.nansum(kept, axis=-1) / nights_kept
    variance = np.nansum((kept - mean[..., None]) ** 2, axis=-1) / (nights_kept - 1)
    return mean, np.maximum(variance, RESOLUTION**2), count


def _normal(off: Floats, degrees: Floats) -> Floats:
    """Student's t as a normal deviation of the same probability, within 0.02 for five degrees and more
    (D. L. Wallace, Annals of Mathematical Statistics 30, 1959).
    """
    scale = (8 * degrees + 1) / (8 * degrees + 3)
    return np.asarray(np.sign(off) * scale * np.sqrt(degrees * np.log1p(off**2 / degrees)))
