"""SPI NOR flash: UBIFS."""

import pytest

pytestmark = pytest.mark.lg_feature("spi")


def test_spi(measure, benchmark, case):
    measure(benchmark, case)
