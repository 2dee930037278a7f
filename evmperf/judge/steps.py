"""Where a series of nights came to another level: change points by binary segmentation (A. J. Scott and
M. Knott, Biometrics 30, 1974), in units of the noise over many nights, so that what fewer than ten nights
have is no level yet.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

RESOLUTION = 1e-3
"""Relative spread below which a series counts as quantised: it never has less."""
_SEGMENT = 10
"""Nights that a level must have lasted to be a level of its own."""
_PENALTY = 12.0
_AROUND = 3
"""Nights on either side that tell whether one is odd."""
_FAR = 4.0
"""Spreads at which a night among others is taken to be."""


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


def of_sorted(ordered: Floats, share: float) -> Floats:
    """A quantile along the last axis, which is in order, NaN last (as numpy's nanquantile)."""
    last = np.maximum((~np.isnan(ordered)).sum(axis=-1), 1) - 1
    place = share * last
    low = place.astype(np.int64)
    near, far = (
        np.take_along_axis(ordered, index[..., None], -1)[..., 0]
        for index in (low, np.minimum(low + 1, last))
    )
    return np.asarray(near + (place - low) * (far - near))


def begins(rows: Floats, newest: int) -> Numbers:
    """Where the present level of each row began, leaving so many newest nights out of it."""
    settled_rows = rows[:, :-newest]
    first_nights = np.isnan(rows).sum(axis=1)
    for index, places in enumerate(_changes(settled_rows)):
        while places:
            place = places.pop()
            first = places[-1] if places else first_nights[index]
            if _is_step(settled_rows[index, first:], place - first):
                first_nights[index] = place
                break
    return np.asarray(first_nights, dtype=np.int64)


def _is_step(values: Floats, at: int) -> bool:
    """Whether a step explains a series better than a slope: who drifts has no new level."""
    values = values - values.mean()
    step = at * values[:at].mean() ** 2 + (len(values) - at) * values[at:].mean() ** 2
    slope = np.arange(len(values)) - (len(values) - 1) / 2
    return bool(step > (values @ slope) ** 2 / (slope @ slope))


def _changes(rows: Floats) -> list[list[int]]:
    """The change points of each row, as columns."""
    begun = np.isnan(rows).sum(axis=1)
    points: list[list[int]] = [[] for _ in rows]
    long = np.flatnonzero(rows.shape[1] - begun >= 2 * _SEGMENT)
    if not len(long):
        return points
    scaled = rows[long] / _noise(rows[long])[:, None]
    for first in np.unique(begun[long]):
        here = begun[long] == first
        nights = scaled[here, first:]
        # One odd night is no level: what is far from the nights around it counts as less far.
        around = np.pad(nights, ((0, 0), (_AROUND, _AROUND)), mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(around, 2 * _AROUND + 1, axis=1)
        # Part by part: the median makes copies.
        middle = np.concatenate([np.median(part, axis=2) for part in np.array_split(windows, 8)])
        for index, row in zip(long[here], np.clip(nights, middle - _FAR, middle + _FAR), strict=True):
            points[index] = [int(first) + place for place in _split(row, _PENALTY * np.log(len(row)))]
    return points


def _split(nights: Floats, penalty: float) -> list[int]:
    """Where nights are best split in two, and each part again, while that explains more than the penalty; a
    part of fewer than _SEGMENT nights is no level.
    """
    count, off = len(nights), nights - nights.mean()
    if count < 2 * _SEGMENT:
        return []
    left = np.arange(1, count)
    # The squares that a split explains.
    fit = off.cumsum()[:-1] ** 2 * (1 / left + 1 / (count - left))
    place = int(fit.argmax()) + 1
    if place > count - _SEGMENT and fit[place - 1] > penalty:
        return _split(nights[:place], penalty)  # the newest are too few for a level
    place = _SEGMENT + int(fit[_SEGMENT - 1 : count - _SEGMENT].argmax())
    if fit[place - 1] <= penalty:
        return []
    return [
        *_split(nights[:place], penalty),
        place,
        *(place + one for one in _split(nights[place:], penalty)),
    ]


def _noise(rows: Floats) -> Floats:
    """The spread of each row from night to night, as much larger as that of nights further apart is."""
    steps = np.abs(np.diff(rows, axis=1))
    kept = np.minimum(steps, np.maximum(3 * of_sorted(np.sort(steps, axis=-1), 0.85)[:, None], RESOLUTION))
    noise = np.maximum(np.nanmean(kept, axis=1) * np.sqrt(np.pi) / 2, RESOLUTION)
    rises = _variogram(rows, noise**2, (1, 3, 4, 5, 6))
    rise = np.nanmedian(rises[:, 1:], axis=0).mean() / max(np.nanmedian(rises[:, 0]), 1e-9)
    return np.asarray(noise * np.sqrt(max(float(rise), 1.0)))


def changes(series: Sequence[Sequence[float]]) -> list[list[int]]:
    """Where each series, nights of one metric, has come to another level: places, ascending. What
    fewer than ten nights have is no level yet.
    """
    if not series:
        return []
    rows, _ = stacked(series, max(map(len, series)))
    begun = np.isnan(rows).sum(axis=1)
    return [[place - int(gone) for place in row] for gone, row in zip(begun, _changes(rows), strict=True)]


def _variogram(rows: Floats, variance: Floats, lags: Sequence[int]) -> Floats:
    """Half the mean square difference of nights so far apart, as a share of the variance."""
    far = 2 * _FAR**2 * variance[:, None]
    shares = np.full((len(rows), len(lags)), np.nan)
    for place, lag in enumerate(lags):
        squares = np.minimum((rows[:, lag:] - rows[:, :-lag]) ** 2, far)
        pairs = (~np.isnan(squares)).sum(axis=1)
        sums = np.nansum(squares, axis=1)
        shares[:, place] = sums / np.where(pairs, pairs, np.nan) / 2 / variance
    return shares
