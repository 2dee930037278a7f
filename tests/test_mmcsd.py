"""SD card: fio, file systems, and files in U-Boot."""

import pytest

pytestmark = pytest.mark.lg_feature("mmcsd")


def test_mmcsd(measure, benchmark, case):
    measure(benchmark, case)
