"""eMMC: fio, file systems, and U-Boot's raw access."""

import pytest

pytestmark = pytest.mark.lg_feature("emmc")


def test_emmc(measure, benchmark, case):
    measure(benchmark, case)
