"""OSPI and QSPI flash: raw access, UBIFS, and U-Boot."""

import pytest

pytestmark = pytest.mark.lg_feature("ospi")


def test_ospi(measure, benchmark, case):
    measure(benchmark, case)
