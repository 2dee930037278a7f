"""Which runs make the guide of a release."""

import pytest

from evmperf.judge.published.releases import NEWEST, of_release
from evmperf.measure.runs.history import StoredRun
from evmperf.model.errors import UsageError
from selftests.support import spools


def stored(number, board, release, os):
    return StoredRun(spools.a_run(number, board=board, release=release, os=os), list)


LINUX = stored(0, "am64xx-hsevm", "11.00", "RT-linux")
UBOOT = stored(1, "j7200-evm", "", "")


def test_a_board_measured_in_u_boot_alone_does_not_cost_the_guide():
    assert of_release([LINUX, UBOOT], NEWEST) == [LINUX, UBOOT]
    assert of_release([LINUX, UBOOT], NEWEST, os="RT-linux") == [LINUX, UBOOT]


def test_a_later_run_in_u_boot_alone_does_not_hide_the_release():
    later = stored(2, "am64xx-hsevm", "", "")
    assert of_release([LINUX, later], NEWEST) == [LINUX]


def test_two_operating_systems_are_a_choice():
    with pytest.raises(UsageError, match="Linux and RT-linux"):
        of_release([LINUX, stored(1, "j7200-evm", "11.00", "Linux")], NEWEST)
