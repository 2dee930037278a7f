"""UFS: U-Boot's raw access."""

import pytest

pytestmark = pytest.mark.lg_feature("ufs")


def test_ufs(measure, benchmark, case):
    measure(benchmark, case)
