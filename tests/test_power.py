"""Low-power modes: the power of each rail while the board sleeps."""

import pytest

pytestmark = pytest.mark.lg_feature("power")


def test_power(measure, benchmark, case):
    measure(benchmark, case)
