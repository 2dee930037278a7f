"""mSATA: a disk in the mSATA slot."""

import pytest

pytestmark = pytest.mark.lg_feature("msata")


def test_msata(measure, benchmark, case):
    measure(benchmark, case)
