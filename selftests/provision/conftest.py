"""What stands for cards and their hosts."""

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from evmperf.lab.provision import download
from selftests.provision import imagelab
from selftests.provision.imagelab import MIB, Image, used_card
from selftests.support import cardimage, devices


@pytest.fixture
def image(tmp_path):
    return Image(tmp_path / "it's 100% an image.wic")


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """An image of TI's form."""
    return imagelab.build(tmp_path_factory.mktemp("plain") / "tisdk-am64xx-evm.wic")


@pytest.fixture(scope="session")
def packed(plain):
    return imagelab.pack(plain, "zst")


@pytest.fixture(scope="module")
def releases(request, tmp_path_factory):
    """Two releases of the module's virtual EVM, as files that a vendor would publish."""
    variant, folder = request.module.VARIANT, tmp_path_factory.mktemp("releases")
    files = [folder / f"{cardimage.name(variant, number)}.wic.zst" for number in (1, 2)]
    for number, file in enumerate(files, 1):
        cardimage.build(variant, number, file, print)
    return files


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The folder of this test's images."""
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(packed, monkeypatch):
    """A server of that image, compressed."""
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    with imagelab.serving(packed.read_bytes()) as server:
        yield server


@pytest.fixture
def card(tmp_path):
    return used_card(tmp_path / "card", 8 * MIB)


@pytest.fixture
def loop():
    """A function that gives a block device with this file behind it."""
    with contextlib.ExitStack() as stack:
        yield lambda *what: stack.enter_context(devices.loop(*what))


@pytest.fixture
def dying(tmp_path):
    """A block device that takes no more from its second mebibyte on: what is behind it is full."""
    with devices.small(tmp_path / "full", "2m") as folder:
        with (folder / "disk").open("wb") as disk:
            disk.truncate(8 * MIB)
        with devices.loop(folder / "disk") as device:
            yield device


@pytest.fixture
def mounted(card, tmp_path, loop):
    """A block device whose file system is mounted here."""
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", str(card)], check=True)
    device, folder = loop(card), tmp_path / "mnt"
    folder.mkdir()
    subprocess.run(["mount", device, folder], check=True)
    yield device
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def state(monkeypatch):
    """Where virtual labs and what is known of their boards are: in memory, as QEMU stands still while a busy
    disk does not take what it writes.
    """
    has_room = shutil.disk_usage("/dev/shm").free > 4096 << 20
    with tempfile.TemporaryDirectory(prefix="evmperf-", dir="/dev/shm" if has_room else None) as name:
        monkeypatch.setenv("EVMPERF_STATE", name)
        yield Path(name)
