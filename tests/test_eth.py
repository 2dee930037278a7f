"""Ethernet: TCP and UDP over any port."""

import pytest

pytestmark = pytest.mark.lg_feature("eth")


def test_eth(measure, benchmark, case):
    measure(benchmark, case)
