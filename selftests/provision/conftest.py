"""What stands for cards and their hosts. Tests that boot a virtual EVM more often than CI has time
for wait to be asked for.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from evmperf.lab.provision import download
from selftests.provision import cards, imagelab
from selftests.provision.imagelab import MIB
from selftests.provision.imageserver import Server
from selftests.support import on_request

_SHARED = Path("/dev/shm")
OPTION = "--all-provisioning"


def pytest_addoption(parser):
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config, items):
    on_request.skip_unless_asked(config, items, OPTION, "long_provisioning")


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    return cards.an_image(tmp_path_factory.mktemp("image") / "image")


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """An image of TI's form."""
    return imagelab.build(tmp_path_factory.mktemp("plain") / "tisdk-am64xx-evm.wic")


@pytest.fixture(scope="session")
def packed(plain):
    return imagelab.pack(plain, "zst")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The folder of this test's images."""
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(packed, monkeypatch):
    """A server of that image, compressed."""
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    server = Server(packed.read_bytes())
    yield server
    server.shutdown()
    server.server_close()


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


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Where virtual labs and what is known of their boards are: in memory, where there is room.

    QEMU stands still while the host's disk does not take what it writes. With a disk that others
    keep busy that was half a minute, and Linux in it called that a stall of its processor.
    """
    has_room = _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > 4096 << 20
    with tempfile.TemporaryDirectory(prefix="evmperf-", dir=_SHARED if has_room else tmp_path) as name:
        monkeypatch.setenv("EVMPERF_STATE", name)
        yield Path(name)
