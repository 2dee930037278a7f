"""Kernel, device tree and ramdisk over the network: put where TFTP looks, booted, compared."""

import os
from pathlib import Path

import pytest
from labgrid.driver import TFTPProviderDriver
from labgrid.resource.provider import TFTPProvider
from labgrid.target import Target
from msgspec.structs import replace

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.commands.app.measuring import MeasuringSession
from evmperf.lab.provision import network
from evmperf.lab.tester import CommandTester
from evmperf.model.errors import BoardError, LabError, UsageError
from evmperf.model.replies import WantedSession
from selftests.provision import imagelab


class Bench:
    """A board that runs what this machine runs."""

    def __init__(self):
        self.asked = None

    def boot_from(self, medium, variables):
        self.asked = medium, dict(variables)

    def shell(self):
        return CommandTester([], "the board")


@pytest.fixture
def target(tmp_path):
    (tmp_path / "tftp").mkdir()
    target = Target("main")
    TFTPProvider(target, name=None, internal=f"{tmp_path}/tftp/", external="board1/")
    target.activate(TFTPProviderDriver(target, name=None))
    return target


@pytest.fixture
def board():
    return catalogue.board(boards.find("virtual-net"))


def kernel(folder, release, version):
    file = folder / "Image"
    file.write_bytes(b"MZ" + bytes(99) + f"Linux version {release} (b@h) {version}\n".encode())
    return str(file)


def here():
    return os.uname().release, os.uname().version


def test_a_kernel_is_staged_booted_and_compared(target, board, tmp_path):
    bench = Bench()
    given = {"kernel": kernel(tmp_path, *here()), "ramdisk": __file__}
    facts = network.boot(target, board, bench, given)
    name = Path(__file__).name
    staged = {"netboot_kernel": "board1/Image", "netboot_ramdisk": f"board1/{name}"}
    assert bench.asked == ("netboot", staged)
    assert (tmp_path / "tftp/Image").read_bytes() == (tmp_path / "Image").read_bytes()
    assert facts["kernel"]["version"] == " ".join(here())
    assert facts["ramdisk"]["name"] == name


def test_another_kernel_is_a_lab_failure_with_both_versions(target, board, tmp_path):
    given = {"kernel": kernel(tmp_path, here()[0], "#9999 other")}
    with pytest.raises(LabError, match=r"its kernel is .* and not .*#9999 other"):
        network.boot(target, board, Bench(), given)


class Lost(Bench):
    """A board that does not boot, and what it said."""

    def __init__(self, *said):
        self.said = said

    def boot_from(self, *_):
        pass

    def shell(self):
        raise BoardError("no shell")

    def console_lines(self):
        return self.said


def test_a_server_that_fails_is_the_lab_s_and_a_kernel_that_does_not_boot_the_board_s(
    target, board, tmp_path
):
    given = {"kernel": kernel(tmp_path, *here())}
    cut = Lost("Loading: *\b###", "\tT T", "Retry count exceeded; starting again")
    with pytest.raises(LabError, match=r"Retry count exceeded.*\(no shell\)"):
        network.boot(target, board, cut, given)
    bad = Lost("Loading: *\b###", "Bytes transferred = 9 (9 hex)", "Bad Linux ARM64 Image magic!")
    with pytest.raises(BoardError, match=r"^no shell$"):
        network.boot(target, board, bad, given)


def test_of_a_device_tree_the_model_is_compared(target, board, tmp_path):
    """This host has no device tree to ask."""
    (tmp_path / "a.dts").write_text('/dts-v1/; / { model = "TI AM642 EVM"; };')
    imagelab.run("dtc", "-q", "-O", "dtb", "-o", tmp_path / "a.dtb", tmp_path / "a.dts")
    bench = Bench()
    facts = network.boot(target, board, bench, {"dtb": str(tmp_path / "a.dtb")})
    assert facts["dtb"]["model"] == "TI AM642 EVM"
    assert bench.asked[1] == {"netboot_dtb": "board1/a.dtb"}
    with pytest.raises(LabError, match="model is 'TI J721E' and not 'TI AM642 EVM'"):
        network._check("device tree's model", "TI AM642 EVM", "TI J721E")


@pytest.mark.parametrize(
    ("variant", "word", "said"),
    [
        ("virtual-net", "/none/Image", "there is no kernel /none/Image"),
        ("virtual-sd", __file__, "U-Boot's network boot"),
        ("virtual-net", __file__, "names no TFTPProvider with its driver"),
    ],
)
def test_what_cannot_be_is_said(variant, word, said):
    bench = Bench()
    with pytest.raises(UsageError, match=said):
        network.boot(Target("bare"), catalogue.board(boards.find(variant)), bench, {"kernel": word})
    assert bench.asked is None


def test_no_ethernet_is_measured_on_a_board_that_was_booted_over_it(tmp_path):
    board = catalogue.board(boards.find("virtual"))
    wanted = WantedSession(board="virtual", results=str(tmp_path))
    session = MeasuringSession(board, wanted)
    known = catalogue.benchmarks().values()
    ethernet = [(b, c) for b in known if b.driver in ("cpsw", "icssg", "ipsec") for c in b.cases("full")]
    measured = [pair for pair in ethernet if not session.unsupported(*pair)]
    assert measured
    session = MeasuringSession(board, replace(wanted, kernel="Image"))
    assert all("booted over the network" in session.unsupported(*pair) for pair in measured)
    (boot, *_) = (b for b in known if b.driver == "emmc")
    assert not session.unsupported(boot, boot.cases("full")[0])
