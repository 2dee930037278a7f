"""Latencies of the real-time kernel."""

import pytest

pytestmark = pytest.mark.lg_feature("rt")


def test_rt(measure, benchmark, case):
    measure(benchmark, case)
