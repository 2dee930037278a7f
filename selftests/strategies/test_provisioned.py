"""The strategy's state between off and U-Boot: what is done before each power-on."""

import pytest

from evmperf.boards.console.attempt import CameBack
from evmperf.model.errors import LabError


def test_before_each_power_on_with_the_power_off(open_bench, fake):
    bench = open_bench()
    seen = []
    bench.before_power_on(lambda: seen.append(fake.is_on))
    bench.shell()
    assert seen == [False]
    bench.abandon()
    bench.shell()
    assert seen == [False, False]


def test_what_cannot_be_done_is_not_tried_again_and_leaves_the_board_off(open_bench, fake):
    bench = open_bench(K3BootStrategy={"retries": 2})
    tries = []

    def refuse():
        tries.append(1)
        error = LabError("the card is gone")
        error.permanent = True
        raise error

    bench.before_power_on(refuse)
    with pytest.raises(LabError, match="the card is gone"):
        bench.shell()
    assert tries == [1]
    assert not fake.is_on


@pytest.mark.parametrize(
    ("said", "permanent"),
    [
        (" ** fs_devread read error - block", False),
        ("Timeout for status update: 00000001 00000001", False),
        ("Failed to load '/boot/Image'", True),
        ("Bad Linux ARM64 Image magic!", True),
    ],
)
def test_a_medium_that_did_not_answer_u_boot_is_worth_another_power_cycle(said, permanent):
    assert CameBack("boot", f"boot\r\n{said}\r\n=> ").permanent == permanent
