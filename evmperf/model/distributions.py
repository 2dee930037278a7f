"""Tails and quantiles of the normal distribution, and Student's tails.

Ratios (probabilities, deviations in standard errors) without units. SciPy's `special` judges these
(selftests/model/test_stats.py), but takes 143 MB.

Source: Student's tails are finite sums for whole degrees of freedom (M. Abramowitz, I. Stegun, Handbook of
Mathematical Functions, 26.7.3 and 26.7.4).
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Floats = NDArray[np.float64]

_erfc = np.frompyfunc(math.erfc, 1, 1)


def ndtr(deviation: ArrayLike) -> _Floats:
    """Share of the standard normal distribution below a deviation."""
    return np.asarray(_erfc(-np.asarray(deviation, float) / math.sqrt(2)), float) / 2


def ndtri(share: ArrayLike) -> _Floats:
    """The deviation below which this share of the standard normal distribution is: the inverse of `ndtr`."""
    with np.errstate(invalid="ignore"):  # NaN stays what it is
        return np.asarray(_quantile(np.asarray(share, float)), float)


def _deviation(share: float) -> float:
    if 0 < share < 1:
        return NormalDist().inv_cdf(share)
    return math.copysign(math.inf, share - 0.5) if share in (0, 1) else math.nan


_quantile = np.frompyfunc(_deviation, 1, 1)


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
