"""What a board shows as it is found."""

import pytest

pytestmark = pytest.mark.lg_feature("desk")


def test_desk(measure, benchmark, case):
    measure(benchmark, case)
