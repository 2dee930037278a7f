"""Graphics: glmark2."""

import pytest

pytestmark = pytest.mark.lg_feature("graphics")


def test_graphics(measure, benchmark, case):
    measure(benchmark, case)
