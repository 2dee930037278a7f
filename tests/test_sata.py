"""SATA: a disk at the SATA port."""

import pytest

pytestmark = pytest.mark.lg_feature("sata")


def test_sata(measure, benchmark, case):
    measure(benchmark, case)
