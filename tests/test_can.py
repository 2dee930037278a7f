"""CAN: frames through a controller's own loopback."""

import pytest

pytestmark = pytest.mark.lg_feature("can")


def test_can(measure, benchmark, case):
    measure(benchmark, case)
