"""Boot time over cold boots."""

import pytest

pytestmark = pytest.mark.lg_feature("boot")


def test_boot(measure, benchmark, case):
    measure(benchmark, case)
