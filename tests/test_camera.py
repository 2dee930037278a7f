"""A camera: frames of its sensor."""

import pytest

pytestmark = pytest.mark.lg_feature("camera")


def test_camera(measure, benchmark, case):
    measure(benchmark, case)
