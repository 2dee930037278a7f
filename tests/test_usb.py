"""USB: a disk at the host port, and the board as a disk of another host."""

import pytest

pytestmark = pytest.mark.lg_feature("usb")


def test_usb(measure, benchmark, case):
    measure(benchmark, case)
