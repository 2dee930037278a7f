"""PRU_ICSSG: TCP and UDP over its Ethernet port."""

import pytest

pytestmark = pytest.mark.lg_feature("icssg")


def test_icssg(measure, benchmark, case):
    measure(benchmark, case)
