"""Messages to the board's other processors."""

import pytest

pytestmark = pytest.mark.lg_feature("ipc")


def test_ipc(measure, benchmark, case):
    measure(benchmark, case)
