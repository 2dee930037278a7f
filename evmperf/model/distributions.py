"""Tails and quantiles of the normal and of Student's distribution, and polygamma functions, on numpy arrays.

Ratios (probabilities, deviations in standard errors) without units. SciPy's `special` has the same functions
under the same names, and judges these (selftests/model/test_distributions.py), but takes 143 MB.

Sources: the normal quantile is AS 241 (M. J. Wichura, Applied Statistics 37, 1988) of Python's `statistics`;
Student's tail is the incomplete beta function by its continued fraction (NIST DLMF 8.17.22, Lentz's modified
method); polygamma functions are their asymptotic series (DLMF 5.11.2, 5.15.8) after recurrences.
"""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Like = Any
"""A number or an array of them."""
_Floats = NDArray[np.float64]

_STEPS = 200
"""Of the continued fraction at most: it converges in the order of the root of the degrees of freedom."""
_LEAST = 1e-300
_SHIFT = 12.0
"""From this argument on, the series of polygamma functions are exact to double precision."""

_erfc = np.frompyfunc(math.erfc, 1, 1)
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


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


def stdtr(degrees: _Like, deviation: _Like) -> _Floats:
    """Share of Student's distribution with these degrees of freedom (above 0) below a deviation."""
    degrees, deviation = np.broadcast_arrays(np.asarray(degrees, float), np.asarray(deviation, float))
    whole = degrees + deviation**2
    tail = _incomplete_beta(degrees, degrees / whole, deviation**2 / whole) / 2
    return np.where(deviation > 0, 1 - tail, tail)


def stdtrit(degrees: _Like, share: _Like) -> _Floats:
    """The deviation below which this share of Student's distribution is: the inverse of `stdtr`.

    Halvings of what is between -1e8 and 0, in the arcsinh of the deviation, and a step of Newton's.
    """
    degrees, share = np.broadcast_arrays(np.asarray(degrees, float), np.asarray(share, float))
    wanted = np.minimum(share, 1 - share)
    low, high = np.full(degrees.shape, np.arcsinh(-1e8)), np.zeros(degrees.shape)
    for _ in range(32):
        middle = (low + high) / 2
        below = stdtr(degrees, np.sinh(middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found = np.sinh((low + high) / 2)
    half = np.asarray(_lgamma((degrees + 1) / 2) - _lgamma(degrees / 2), float)
    density = np.exp(half - (degrees + 1) / 2 * np.log1p(found**2 / degrees)) / np.sqrt(degrees * math.pi)
    found = found - (stdtr(degrees, found) - wanted) / density
    return np.where(np.isnan(share), np.nan, np.where(share > 0.5, -found, found))


def digamma(x: _Like) -> _Floats:
    """The derivative of the logarithm of the gamma function, for x above 0."""
    x = np.asarray(x, float)
    below = np.zeros_like(x)
    for _ in range(int(_SHIFT)):
        small = x < _SHIFT
        below, x = np.where(small, below - 1 / x, below), np.where(small, x + 1, x)
    y = x**-2
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return np.asarray(below + np.log(x) - 1 / (2 * x) - series)


def zeta(s: int, x: _Like) -> _Floats:
    """Hurwitz's zeta function, the sum of (n + x)^-s, for s of 2 or more and x above 0.

    `zeta(2, x)` is the trigamma function. The tail is Euler and Maclaurin's (DLMF 25.11.43).
    """
    x = np.asarray(x, float)
    below = np.zeros_like(x)
    for _ in range(int(_SHIFT)):
        below, x = below + x**-s, x + 1
    series, factor = x ** (1 - s) / (s - 1) + x**-s / 2, float(s)
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66), 1):
        series = series + bernoulli / math.factorial(2 * k) * factor * x ** (1 - s - 2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    return np.asarray(below + series)


def _incomplete_beta(degrees: _Floats, x: _Floats, rest: _Floats) -> _Floats:
    """The regularized incomplete beta function of degrees/2 and 1/2 at x; `rest` is 1 - x."""
    a, b = degrees / 2, 0.5
    # The fraction converges for x below (a + 1) / (a + b + 2); above, the function's symmetry is used.
    swapped = x > (a + 1) / (a + b + 2)
    p, q, z = np.where(swapped, b, a), np.where(swapped, a, b), np.where(swapped, rest, x)
    with np.errstate(all="ignore"):
        gammas = np.asarray(_lgamma(p + q) - _lgamma(p) - _lgamma(q), float)
        powers = p * np.log(z) + q * np.log(np.where(swapped, x, rest))
        found = np.where(z <= 0, 0.0, np.exp(gammas + powers) * _fraction(p, q, z) / p)
    return np.where(swapped, 1 - found, found)


def _fraction(p: _Floats, q: _Floats, z: _Floats) -> _Floats:
    c = np.ones_like(z)
    d = 1 / _apart(1 - (p + q) * z / (p + 1))
    value = d
    for m in range(1, _STEPS):
        for term in (
            m * (q - m) * z / ((p + 2 * m - 1) * (p + 2 * m)),
            -(p + m) * (p + q + m) * z / ((p + 2 * m) * (p + 2 * m + 1)),
        ):
            d, c = 1 / _apart(1 + term * d), _apart(1 + term / c)
            value = value * c * d
        if np.nanmax(np.abs(c * d - 1), initial=0) < 1e-15:
            break
    return value


def _apart(value: _Floats) -> _Floats:
    return np.where(np.abs(value) < _LEAST, _LEAST, value)
