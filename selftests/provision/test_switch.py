"""Card switches with Labgrid's own drivers, at an exporter behind a real SSH, with a loop device
for the card and a stand-in for the tool `usbsdmux`.
"""

import os
import subprocess

import pytest
from labgrid.driver import USBSDMuxDriver, USBStorageDriver
from labgrid.resource.remote import NetworkUSBSDMuxDevice, RemotePlaceManager
from labgrid.target import Target

from evmperf.lab import media
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision.ways import CardWay
from evmperf.model.errors import LabError
from selftests.provision.imagelab import USED, Image, assert_equal

TOOL = """#!/bin/sh
# usbsdmux CONTROL MODE: the mode is a file's content; a stuck one stays.
case $2 in
  get) cat "$1" ;;
  *) [ ! -e "$1.gone" ] || { echo "no such device"; exit 1; }
     [ -e "$1.stuck" ] || echo "$2" >"$1" ;;
esac
"""


@pytest.fixture
def image(tmp_path):
    """With a name that Labgrid's driver need not quote."""
    return Image(tmp_path / "image.wic")


@pytest.fixture
def exporter(tmp_path, sshd, monkeypatch):
    """A host behind SSH, which Labgrid reaches by any name: it keeps one connection a name."""
    options = " ".join(f"'{word}'" for word in sshd.options)
    ssh = f'#!/bin/sh\nexec /usr/bin/ssh {options} -o HostName=127.0.0.1 "$@"\n'
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("ssh", ssh), ("usbsdmux", TOOL)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return sshd


@pytest.fixture
def control(tmp_path):
    """Where the switch is."""
    file = tmp_path / "control"
    file.write_text("dut\n")
    return file


def with_switch(**words):
    target = Target("main")
    usb = {"busnum": 1, "devnum": 1, "vendor_id": 0x0424, "model_id": 0x4041}
    NetworkUSBSDMuxDevice(target, name=None, **usb, **words).avail = True
    return target, USBSDMuxDriver(target, name=None)


@pytest.fixture
def target(exporter, control, card, loop, monkeypatch):
    # Whether a resource is there is for a coordinator to say, which is not here.
    monkeypatch.setattr(RemotePlaceManager, "poll", lambda _: None)
    folder = control.parent
    target, switch = with_switch(host=folder.name, path=str(loop(card)), control_path=str(control))
    # Where there is an environment, its `tools` say where this is.
    switch.tool = str(folder / "bin/usbsdmux")
    USBStorageDriver(target, name=None)
    return target


def put(target, image, begins=lambda: None):
    CardWay(CardSwitch.of(target)).put(image, begins)


def test_an_image_goes_to_the_card_at_the_exporter(target, image, card, control):
    modes = []
    put(target, image, lambda: modes.append(control.read_text()))
    subprocess.run(["sync"], check=True)
    assert_equal(card, image)
    assert [*modes, control.read_text()] == ["host\n", "dut\n"]


def test_a_card_that_labgrid_cannot_write_is_said_so(target, image, control, dying):
    target.get_resource(NetworkUSBSDMuxDevice).path = str(dying)
    with pytest.raises(LabError, match=r"not written by Labgrid's USBStorageDriver \(dd: .*check the card"):
        put(target, image)
    assert control.read_text() == "dut\n"


def test_a_link_that_is_cut_is_the_labs_failure(target, image, exporter):
    with pytest.raises(LabError, match=r"not written by|card switch does not go"):
        put(target, image, exporter.stop)


@pytest.mark.parametrize(
    "wrong",
    [
        ("stuck", "dut", "to host .* at dut: .*stuck"),
        ("stuck", "host", "to dut .* at host: .*stuck"),
        ("gone", "dut", "does not go to host: "),
    ],
)
def test_a_switch_that_is_stuck_or_gone_is_said_so(target, image, card, control, wrong):
    fault, at, said = wrong
    control.write_text(f"{at}\n")
    control.with_name(f"control.{fault}").touch()
    with pytest.raises(LabError, match=said):
        put(target, image)
    assert (set(card.read_bytes()) == {USED}) == (at == "dut")


def test_no_card_after_the_switch_is_said_so(target, image, monkeypatch):
    monkeypatch.setattr(media, "_MEDIUM_S", 0.3)
    target.get_resource(NetworkUSBSDMuxDevice).path = "/dev/no-such-disk"
    with pytest.raises(LabError, match=r"no card .* within"):
        put(target, image)


def test_a_switch_without_storage_is_a_mistake_of_the_board_file():
    target, _ = with_switch(host="exporter", path="/dev/x", control_path="/dev/y")
    with pytest.raises(LabError, match="no USBStorageDriver"):
        CardSwitch.of(target)
    assert CardSwitch.of(Target("bare")) is None
