"""The distributions of the verdicts, against SciPy's."""

import numpy as np
import pytest
from scipy import special

from evmperf.model import distributions

DEVIATIONS = np.concatenate([-np.logspace(-6, 1.5, 60), [0.0], np.logspace(-6, 1.5, 60)])
SHARES = np.concatenate([np.logspace(-14, -0.31, 50), [0.5], 1 - np.logspace(-8, -0.31, 30)])


@pytest.mark.parametrize("name", ["ndtr", "ndtri"])
def test_normal(name):
    at = DEVIATIONS if name == "ndtr" else SHARES
    expected = getattr(special, name)(at)
    assert getattr(distributions, name)(at) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 30, 99, 500])
def test_student(degrees):
    expected = 2 * special.stdtr(degrees, -np.abs(DEVIATIONS))
    found = [distributions.student(degrees, one) for one in DEVIATIONS]
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-11)


def test_ends():
    assert list(distributions.ndtri([0, 1])) == [-np.inf, np.inf]
    assert np.isnan(distributions.ndtri(np.nan))
