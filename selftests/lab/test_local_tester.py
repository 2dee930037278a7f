"""This machine as tester: its address comes onto the cable's interface, and goes again."""

import os
import subprocess

import pytest

from evmperf.lab.tester import LocalTester
from evmperf.model.errors import LabError
from evmperf.model.places import STEP_FOLDER
from selftests.support.boardfiles import fake_board

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for an interface of its own")


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def cable():
    """An interface of this test, on no wire."""
    name = f"evt{os.getpid() % 100_000}"
    try:
        ip("tuntap", "add", name, "mode", "tap")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no interface can be made here: {error.stderr.strip()}")
    yield name
    ip("link", "del", name)


@pytest.fixture
def board(tmp_path):
    """A function that gives a board with this tester and a cable."""

    def make(tester):
        cable = {"board_address": "198.51.100.2/28", "tester_address": "198.51.100.1"}
        return fake_board(tmp_path / "b.yaml", "cpsw", tester={"host": tester}, cpsw=cable)

    return make


def test_the_address_is_there_while_it_is_needed(board, cable):
    before = ip("-4", "address", "show", "dev", cable)
    tester = LocalTester(board(f"local:{cable}"))
    try:
        assert "198.51.100.1/28" in ip("-4", "address", "show", "dev", cable)
        assert cable in tester.limits
        assert tester.run(f"echo {STEP_FOLDER}", 20).status == 0
        second = LocalTester(board(f"local:{cable}"))
        second.close()  # it was not the second's: it stays
        assert "198.51.100.1/28" in ip("-4", "address", "show", "dev", cable)
    finally:
        tester.close()
    assert "198.51.100.1" not in ip("-4", "address", "show", "dev", cable)
    assert "inet" not in before


def test_what_was_added_is_put_back_when_the_rest_fails(board, cable, monkeypatch):
    really = LocalTester._do

    def fails_late(self, command):
        if command.startswith("ip link set"):
            raise LabError("made to fail")
        return really(self, command)

    monkeypatch.setattr(LocalTester, "_do", fails_late)
    with pytest.raises(LabError, match="made to fail"):
        LocalTester(board(f"local:{cable}"))
    assert "198.51.100.1" not in ip("-4", "address", "show", "dev", cable)


@pytest.mark.parametrize("interface", ["no-such-0", "a;reboot", "../x"])
def test_an_interface_that_is_none_is_named(board, interface):
    with pytest.raises(LabError, match="no network interface"):
        LocalTester(board(f"local:{interface}"))


@pytest.mark.parametrize(("wired", "found"), [([], "none is"), (["a0", "b0"], "a0 and b0")])
def test_without_one_cable_it_asks_which(board, tmp_path, wired, found):
    net = tmp_path / "net"
    net.mkdir()
    for name in wired:
        (net / name / "device").mkdir(parents=True)
        (net / name / "carrier").write_text("1\n")
    with pytest.raises(LabError, match=found):
        LocalTester(board("local"), net)
