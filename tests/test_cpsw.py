"""CPSW: TCP and UDP over the Ethernet switch."""

import pytest

pytestmark = pytest.mark.lg_feature("cpsw")


def test_cpsw(measure, benchmark, case):
    measure(benchmark, case)
