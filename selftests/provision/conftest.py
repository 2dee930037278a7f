"""What stands for cards and their hosts. Tests that boot a virtual EVM more often than CI has time
for wait to be asked for.
"""

import subprocess
from pathlib import Path

import pytest

from evmperf.lab.provision.ways import Host
from selftests.provision import cards
from selftests.provision.imagelab import MIB
from selftests.support import memory, on_request

OPTION = "--all-provisioning"


def pytest_addoption(parser):
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config, items):
    on_request.skip_unless_asked(config, items, OPTION, "long_provisioning")


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    return cards.an_image(tmp_path_factory.mktemp("image") / "image")


@pytest.fixture
def card(tmp_path):
    return cards.used_card(tmp_path / "card", 8 * MIB)


@pytest.fixture
def loop(tmp_path):
    """A function that gives a block device with this file behind it."""
    devices = []

    def attach(file, *options):
        command = ["/usr/sbin/losetup", "--find", "--show", *options, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no loop devices here: {done.stderr.strip()}")
        devices.append(Path(done.stdout.strip()))
        return devices[-1]

    attach.devices = devices
    yield attach
    for device in devices:
        subprocess.run(["/usr/sbin/losetup", "--detach", device], check=True)


@pytest.fixture
def dying(tmp_path, loop):
    """A block device that takes no more from its second mebibyte on: what is behind it is full."""
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", full], check=True)
    try:
        file = full / "disk"
        with file.open("wb") as disk:
            disk.truncate(8 * MIB)
        device = loop(file)
        yield device
        loop.devices.remove(device)
        subprocess.run(["/usr/sbin/losetup", "--detach", device], check=True)
    finally:
        subprocess.run(["umount", "--lazy", full], check=True)


@pytest.fixture(params=["here", "behind a connection"])
def host(request):
    return Host() if request.param == "here" else Host(cards.SHELL, "the other host")


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Where virtual labs and what is known of their boards are, in memory."""
    with memory.folder(tmp_path / "state", mib=4096) as folder:
        monkeypatch.setenv("EVMPERF_STATE", str(folder))
        yield folder
