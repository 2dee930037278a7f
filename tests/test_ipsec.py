"""IPsec: TCP through an ESP tunnel to the tester."""

import pytest

pytestmark = pytest.mark.lg_feature("ipsec")


def test_ipsec(measure, benchmark, case):
    measure(benchmark, case)
