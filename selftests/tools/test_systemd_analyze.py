"""What systemd says of a boot."""

import pytest

from evmperf.benchmarks.tools import systemd_analyze
from evmperf.model.errors import RefusedOutput


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (
            "Startup finished in 2.5s (kernel) + 1min 1.250s (userspace) = 1min 3.750s \n"
            "graphical.target reached after 1min in userspace.\n",
            {"kernel": 2.5, "userspace": 61.25},
        ),
        ("Startup finished in 4s (kernel) + 9s (userspace)", {"kernel": 4.0, "userspace": 9.0}),
    ],
)
def test_the_parts_of_a_boot_are_in_seconds(said, parts):
    assert systemd_analyze.parts(said) == pytest.approx(parts)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Bootup is not yet finished.",
        "sh: systemd-analyze: not found",
        "Startup finished in 9s (userspace) = 9s",
        "Startup finished in [    5.1] usb 1s (kernel) + 2s (userspace) = 3s",
    ],
)
def test_anything_else_is_refused(said):
    with pytest.raises(RefusedOutput):
        systemd_analyze.parts(said)
