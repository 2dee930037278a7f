"""Audio: capture and playback."""

import pytest

pytestmark = pytest.mark.lg_feature("alsa")


def test_alsa(measure, benchmark, case):
    measure(benchmark, case)
