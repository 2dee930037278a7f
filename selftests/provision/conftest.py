"""What stands for cards and their hosts."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from evmperf.lab.provision import download
from selftests.provision import imagelab, imageserver
from selftests.provision.cards import MIB, Image, used_card
from selftests.support import cardimage


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
    with imageserver.serving(packed.read_bytes()) as server:
        yield server


@pytest.fixture
def card(tmp_path):
    return used_card(tmp_path / "card", 8 * MIB)


@pytest.fixture
def loop():
    """A function that gives a block device with this file behind it."""
    devices = []

    def attach(file, *options):
        command = ["/usr/sbin/losetup", "--find", "--show", *options, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no loop devices here: {done.stderr.strip()}")
        devices.append(Path(done.stdout.strip()))
        return devices[-1]

    yield attach
    for device in devices:
        subprocess.run(["/usr/sbin/losetup", "--detach", device], check=True)


@pytest.fixture
def tmpfs():
    """A function that mounts a small file system in memory on a folder."""
    folders = []

    def mount(folder, size):
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
        folders.append(folder)
        return folder

    yield mount
    for folder in folders:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def dying(tmp_path, tmpfs, loop):
    """A block device that takes no more from its second mebibyte on: what is behind it is full."""
    file = tmpfs(tmp_path / "full", "2m") / "disk"
    with file.open("wb") as disk:
        disk.truncate(8 * MIB)
    return loop(file)


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
