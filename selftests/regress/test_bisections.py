"""Bisections from end to end: on a scripted board, and with --all-bisections on a virtual EVM.

A short one still takes some twenty boots: good and bad alone are measured four times each before
their difference is believed.
"""

import pytest
import yaml

from evmperf.boards import board as boards
from selftests.regress import bisections
from selftests.regress.bisections import Words
from selftests.support.fakeboard import FakeBoard, FakeSwitch

SCRIPT = Words(("uboot:colour=red", "uboot:colour=blue"), "uboot:pace=slow", "uboot:dies=yes")


class Scripted(FakeBoard):
    """Boots in no time, or slowly, or not, as its U-Boot variables say."""

    def switch(self, on):
        self.typed.clear()
        super().switch(on)

    def _boot(self):
        said = " ".join(self.typed)
        self.pace_s = 0.6 if "setenv pace" in said else 0.05
        if "setenv dies" in said:
            self.going = "panic"
        super()._boot()


@pytest.fixture
def scripted(tmp_path):
    """The file of such a board."""
    board = Scripted()
    switch = FakeSwitch(board)
    data = yaml.safe_load((boards.ENV_DIR / "virtual.yaml").read_text())
    main = data["targets"]["main"]
    del main["options"]["board"]["virtual"], main["drivers"]["ScpiMeterDriver"]
    main["options"] = {"board": main["options"]["board"], "boot": {"medium": "virtio"}}
    main["features"] = ["boot"]
    main["resources"] = {
        "NetworkSerialPort": {"host": "127.0.0.1", "port": board.port, "protocol": "raw"},
        "NetworkPowerPort": {
            "model": "rest", "index": "0", "host": f"http://127.0.0.1:{switch.port}/power/{{index}}"
        },
    }  # fmt: skip
    main["drivers"]["K3BootStrategy"] = {"retries": 0, "roots": {}, "media": {"virtio": []}}
    file = tmp_path / "scripted.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    yield file
    switch.close()
    board.close()


@pytest.mark.many_sessions
def test_git_bisect_run_on_a_scripted_board(scripted, tmp_path):
    outcome = bisections.commits_of(tmp_path, scripted, SCRIPT, 5, 4)
    assert outcome.found, outcome.table()
    assert {step.answer for step in outcome.state.steps} == {"cannot tell", "good"}


def named(kind, folder, versions, bad):
    _, bisect = bisections.KINDS[kind]
    outcome = bisect(folder, versions, bad)
    assert outcome.found, outcome.table()
    return outcome


@pytest.mark.virtual_evm
@pytest.mark.long_bisection
def test_git_bisect_run_goes_around_a_commit_that_does_not_boot(tmp_path):
    outcome = named("commits", tmp_path, 5, 4)
    assert {step.answer for step in outcome.state.steps} == {"cannot tell", "good"}


@pytest.mark.virtual_evm
@pytest.mark.long_bisection
def test_the_slower_one_of_three_provisioned_images_is_named(tmp_path):
    named("boot", tmp_path, 3, 2)


@pytest.mark.virtual_evm
@pytest.mark.long_bisection
@pytest.mark.parametrize(("kind", "bad"), [("commits", 10), ("boot", 5), ("emmc", 3)])
def test_the_whole(kind, bad, tmp_path):
    versions, _ = bisections.KINDS[kind]
    outcome = named(kind, tmp_path, versions, bad)
    assert len(outcome.state.steps) <= 8
