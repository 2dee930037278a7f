"""Tails and quantiles of the normal distribution, Student's tails, digamma and trigamma functions.

Ratios (probabilities, deviations in standard errors) without units. SciPy's `special` judges these
(selftests/model/test_distributions.py), but takes 143 MB.

Sources: the normal quantile is AS 241 (M. J. Wichura, Applied Statistics 37, 1988) of Python's `statistics`;
Student's tails are finite sums for whole degrees of freedom (M. Abramowitz, I. Stegun, Handbook of
Mathematical Functions, 26.7.3 and 26.7.4); polygamma functions are their asymptotic series (NIST DLMF 5.11.2,
5.15.8) after recurrences.
"""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Like = Any
"""A number or an array of them."""
_Floats = NDArray[np.float64]

_SHIFT = 12.0
"""From this argument on, the series of polygamma functions are exact to ten digits."""

_erfc = np.frompyfunc(math.erfc, 1, 1)


def _quantile(p: float) -> float:
    if 0 < p < 1:
        return NormalDist().inv_cdf(p)
    return math.copysign(math.inf, p - 0.5) if p in (0, 1) else math.nan


_ndtri = np.frompyfunc(_quantile, 1, 1)


def ndtr(deviation: _Like) -> _Floats:
    """Share of the standard normal distribution below a deviation."""
    return np.asarray(_erfc(-np.asarray(deviation, float) / math.sqrt(2)), float) / 2


def ndtri(share: _Like) -> _Floats:
    """The deviation below which this share of the standard normal distribution is: the inverse of `ndtr`."""
    with np.errstate(invalid="ignore"):
        return np.asarray(_ndtri(np.asarray(share, float)), float)


def student(degrees: int, deviation: float) -> float:
    """Share of Student's distribution with these degrees of freedom beyond a deviation, either way."""
    angle = math.atan(abs(deviation) / math.sqrt(degrees))
    odd, squared = degrees % 2, math.cos(angle) ** 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for n in range(2 + odd, degrees + 1, 2):
        total += term
        term *= squared * (n - 1) / n
    within = math.sin(angle) * total
    return 1 - (2 / math.pi * (angle + within) if odd else within)


def digamma(x: _Like) -> _Floats:
    """The derivative of the logarithm of the gamma function, for x above 0."""
    y, below = _beyond(x, 1)
    series = (1 / 12 - y**-2 * (1 / 120 - y**-2 * (1 / 252 - y**-2 / 240))) * y**-2
    return np.asarray(np.log(y) - 1 / (2 * y) - series - below)


def trigamma(x: _Like) -> _Floats:
    """The derivative of the digamma function, for x above 0."""
    y, below = _beyond(x, 2)
    series = (1 / 6 - y**-2 * (1 / 30 - y**-2 * (1 / 42 - y**-2 / 30))) * y**-3
    return np.asarray(1 / y + 1 / (2 * y**2) + series + below)


def _beyond(x: _Like, power: int) -> tuple[_Floats, _Floats]:
    """The argument moved to where series hold, and the sum of powers that it passes."""
    steps = np.asarray(x, float)[..., None] + np.arange(_SHIFT)
    return steps[..., -1] + 1, (steps**-power).sum(axis=-1)
