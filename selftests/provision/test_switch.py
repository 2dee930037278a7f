"""Card switches with Labgrid's own drivers, at an exporter behind a real SSH, with a loop device
for the card and a stand-in for the tool `usbsdmux`.
"""

import os
import subprocess
from pathlib import Path

import pytest
from labgrid.driver import USBSDMuxDriver, USBStorageDriver
from labgrid.resource.remote import NetworkUSBSDMuxDevice, RemotePlaceManager
from labgrid.target import Target

from evmperf.lab import media
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision.ways import CardWay
from evmperf.model.errors import LabError
from selftests.provision.cards import Image, assert_equal, used_card
from selftests.provision.imagelab import MIB
from selftests.support.sshd import Sshd

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
    file = tmp_path / "image.wic"
    file.write_bytes(os.urandom(MIB) + bytes(MIB) + os.urandom(512))
    return Image(file)


@pytest.fixture
def exporter(tmp_path, monkeypatch):
    """A host behind SSH, which Labgrid reaches by any name: it keeps one connection a name."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    sshd = Sshd(folder)
    tools = tmp_path / "bin"
    tools.mkdir()
    options = " ".join(f"'{word}'" for word in sshd.options)
    for name, text in (
        ("ssh", f'#!/bin/sh\nexec /usr/bin/ssh {options} -o HostName=127.0.0.1 "$@"\n'),
        ("usbsdmux", TOOL),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    yield tools, sshd
    sshd.stop()


@pytest.fixture
def card(tmp_path):
    return used_card(tmp_path / "card", 4 * MIB)


def with_switch(**words):
    target = Target("main")
    usb = {"busnum": 1, "devnum": 1, "vendor_id": 0x0424, "model_id": 0x4041}
    NetworkUSBSDMuxDevice(target, name=None, **usb, **words).avail = True
    return target, USBSDMuxDriver(target, name=None)


@pytest.fixture
def target(exporter, tmp_path, card, loop, monkeypatch):
    # Whether a resource is there is for a coordinator to say, which is not here.
    monkeypatch.setattr(RemotePlaceManager, "poll", lambda _: None)
    control = tmp_path / "control"
    control.write_text("dut\n")
    target, switch = with_switch(host=tmp_path.name, path=str(loop(card)), control_path=str(control))
    # Where there is an environment, its `tools` say where this is.
    switch.tool = str(exporter[0] / "usbsdmux")
    USBStorageDriver(target, name=None)
    return target


def mode(tmp_path):
    return (tmp_path / "control").read_text().strip()


def test_an_image_goes_to_the_card_at_the_exporter(target, image, card, tmp_path):
    switch = CardSwitch.of(target)
    modes = []
    CardWay(switch).put(image, lambda: modes.append(mode(tmp_path)))
    subprocess.run(["sync"], check=True)
    assert_equal(card, image.file)
    assert modes == ["host"]
    assert mode(tmp_path) == "dut"


def test_a_card_that_labgrid_cannot_write_is_said_so(target, tmp_path, dying):
    target.get_resource(NetworkUSBSDMuxDevice).path = str(dying)
    file = tmp_path / "long.wic"
    file.write_bytes(os.urandom(6 * MIB))
    with pytest.raises(LabError, match=r"not written by Labgrid's USBStorageDriver \(dd: .*check the card"):
        CardWay(CardSwitch.of(target)).put(Image(file), lambda: None)
    assert mode(tmp_path) == "dut"


def test_a_link_that_is_cut_is_the_labs_failure(target, image, exporter):
    with pytest.raises(LabError, match=r"not written by|card switch does not go"):
        CardWay(CardSwitch.of(target)).put(image, exporter[1].stop)


def test_a_switch_that_is_stuck_at_the_board_is_said_so(target, image, card, tmp_path):
    Path(f"{tmp_path}/control.stuck").touch()
    with pytest.raises(LabError, match=r"host .* dut: .*stuck"):
        CardWay(CardSwitch.of(target)).put(image, lambda: None)
    assert set(card.read_bytes()) == {0xA5}


def test_a_switch_that_is_gone_is_said_so(target, tmp_path):
    Path(f"{tmp_path}/control.gone").touch()
    with pytest.raises(LabError, match=r"card switch .* dut: "):
        CardWay(CardSwitch.of(target)).ready()


def test_no_card_after_the_switch_is_said_so(target, image, monkeypatch):
    monkeypatch.setattr(media, "_MEDIUM_S", 0.3)
    target.get_resource(NetworkUSBSDMuxDevice).path = "/dev/no-such-disk"
    with pytest.raises(LabError, match=r"no card .* within"):
        CardWay(CardSwitch.of(target)).put(image, lambda: None)


def test_a_switch_without_storage_is_a_mistake_of_the_board_file(exporter, tmp_path):
    target, _ = with_switch(host="exporter", path="/dev/x", control_path="/dev/y")
    with pytest.raises(LabError, match="no USBStorageDriver"):
        CardSwitch.of(target)
    assert CardSwitch.of(Target("bare")) is None
