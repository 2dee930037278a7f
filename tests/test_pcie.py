"""PCIe: the cards in its slot."""

import pytest

pytestmark = pytest.mark.lg_feature("pcie")


def test_pcie(measure, benchmark, case):
    measure(benchmark, case)
