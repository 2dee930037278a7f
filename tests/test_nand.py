"""Raw NAND flash: UBIFS."""

import pytest

pytestmark = pytest.mark.lg_feature("nand")


def test_nand(measure, benchmark, case):
    measure(benchmark, case)
