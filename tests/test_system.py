"""LMBench and the classic processor benchmarks."""

import pytest

pytestmark = pytest.mark.lg_feature("system")


def test_system(measure, benchmark, case):
    measure(benchmark, case)
