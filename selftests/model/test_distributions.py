"""The distributions of the verdicts, against SciPy's."""

import numpy as np
import pytest
from scipy import special

from evmperf.model import distributions

DEVIATIONS = np.concatenate([-np.logspace(-6, 1.5, 60), [0.0], np.logspace(-6, 1.5, 60)])
DEGREES = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7.3, 10, 15, 30, 99, 500, 3000.0])
SHARES = np.concatenate([np.logspace(-14, -0.31, 50), [0.5], 1 - np.logspace(-8, -0.31, 30)])


@pytest.mark.parametrize("name", ["ndtr", "ndtri"])
def test_normal(name):
    at = DEVIATIONS if name == "ndtr" else SHARES
    expected = getattr(special, name)(at)
    assert getattr(distributions, name)(at) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_student():
    expected = special.stdtr(DEGREES[:, None], DEVIATIONS)
    assert distributions.stdtr(DEGREES[:, None], DEVIATIONS) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_quantiles_of_student():
    degrees = DEGREES[DEGREES >= 2]
    expected = special.stdtrit(degrees[:, None], SHARES)
    assert distributions.stdtrit(degrees[:, None], SHARES) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 2.5, 11.9, 12.0, 400.0])
def test_polygamma(x):
    assert float(distributions.digamma(x)) == pytest.approx(float(special.digamma(x)), rel=1e-12)
    for s in (2, 3):
        assert float(distributions.zeta(s, x)) == pytest.approx(float(special.zeta(s, x)), rel=1e-12)


def test_ends():
    assert list(distributions.ndtri([0, 1])) == [-np.inf, np.inf]
    assert np.isnan(distributions.ndtri(np.nan))
    assert np.isnan(distributions.stdtrit(3, np.nan))
    assert float(distributions.stdtr(3, 0)) == 0.5
