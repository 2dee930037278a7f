"""Tails and quantiles of the normal distribution, and Student's tails.

Ratios (probabilities, deviations in standard errors) without units. SciPy's `special` judges these
(selftests/model/test_distributions.py), but takes 143 MB.

Sources: the normal quantile is AS 241 (M. J. Wichura, Applied Statistics 37, 1988);
Student's tails are finite sums for whole degrees of freedom (M. Abramowitz, I. Stegun, Handbook of
Mathematical Functions, 26.7.3 and 26.7.4).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Floats = NDArray[np.float64]

_erfc = np.frompyfunc(math.erfc, 1, 1)


_QUANTILE = np.fromstring(
    """
    2509.0809287301227 33430.57558358813 67265.7709270087 45921.95393154987
    13731.69376550946 1971.5909503065513 133.14166789178438 3.3871328727963665
    5226.495278852854 28729.085735721943 39307.89580009271 21213.794301586597
    5394.196021424751 687.1870074920579 42.31333070160091 1.0
    0.0007745450142783414 0.022723844989269184 0.2417807251774506 1.2704582524523684
    3.6478483247632045 5.769497221460691 4.630337846156546 1.4234371107496835
    1.0507500716444169e-09 0.0005475938084995345 0.015198666563616457 0.14810397642748008
    0.6897673349851 1.6763848301838038 2.053191626637759 1.0
    2.0103343992922881e-07 2.7115555687434876e-05 0.0012426609473880784 0.026532189526576124
    0.29656057182850487 1.7848265399172913 5.463784911164114 6.657904643501103
    2.0442631033899397e-15 1.421511758316446e-07 1.8463183175100548e-05 0.0007868691311456133
    0.014875361290850615 0.1369298809227358 0.599832206555888 1.0
    """,
    sep=" ",
).reshape(6, 8)
"""AS 241's polynomials, highest power first: a numerator and denominator for middle, tails and far tails."""


def ndtr(deviation: ArrayLike) -> _Floats:
    """Share of the standard normal distribution below a deviation."""
    return np.asarray(_erfc(-np.asarray(deviation, float) / math.sqrt(2)), float) / 2


def ndtri(share: ArrayLike) -> _Floats:
    """The deviation below which this share of the standard normal distribution is: the inverse of `ndtr`."""
    p = np.asarray(share, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.sqrt(-np.log(np.minimum(p, 1 - p)))
        near = 0.180625 - (p - 0.5) ** 2
        parts = [
            np.polyval(_QUANTILE[n], x) / np.polyval(_QUANTILE[n + 1], x)
            for n, x in ((0, near), (2, tail - 1.6), (4, tail - 5))
        ]
        signed = np.where(tail > 5, parts[2], parts[1]) * np.sign(p - 0.5)
        inside = np.where(near >= 0, parts[0] * (p - 0.5), signed)
        return np.where((p == 0) | (p == 1), np.copysign(np.inf, p - 0.5), inside)


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
