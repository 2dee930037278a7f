"""What a system in memory does with an image, in busybox here: HTTP, a disk, reading it back."""

import contextlib
import functools
import hashlib
import http.server
import os
import subprocess
import threading

import pytest
from labgrid.target import Target

from evmperf.lab.tester import CommandTester
from evmperf.model.errors import LabError, UsageError
from evmperf.provision import network, writer
from evmperf.provision.network import NetworkWay
from selftests.provision.imagelab import MIB
from selftests.provision.test_medium import loop, used_card
from selftests.provision.test_switch import Image
from selftests.provision.test_ways import board

__all__ = ["loop"]


class Bench:
    """A system in memory: busybox's shell, with a /tmp that is its own."""

    def __init__(self):
        self.mediums = []
        start = "mount -t tmpfs none /tmp && echo up && exec sleep 600"
        self._system = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start], stdout=subprocess.PIPE, text=True
        )
        assert self._system.stdout.readline() == "up\n"
        enter = ["nsenter", f"--mount=/proc/{self._system.pid}/ns/mnt", "busybox"]
        self._shell = CommandTester(enter, "the system in memory")

    @contextlib.contextmanager
    def started_from(self, medium):
        self.mediums.append(medium)
        yield self._shell

    def close(self):
        self._system.kill()
        self._system.wait()
        self._system.stdout.close()


class Provider:
    """What Labgrid's HTTPProviderDriver does, with a server that is there."""

    def __init__(self, folder, url):
        self.folder, self.url = folder, url

    def stage(self, name):
        (self.folder / "image").unlink(missing_ok=True)
        (self.folder / "image").symlink_to(name)
        return f"{self.url}/image"


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Provider(folder, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


@pytest.fixture
def disk(tmp_path, loop):
    return loop(used_card(tmp_path / "disk", 6 * MIB))


@pytest.fixture
def way(tmp_path, disk, served, monkeypatch):
    monkeypatch.setattr(Target, "get_driver", lambda *_: served)
    bench = Bench()
    yield NetworkWay(Target("main"), board(tmp_path, device=str(disk)), bench)
    bench.close()


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "it's 100% an image.wic"
    file.write_bytes(os.urandom(MIB + 512) + bytes(2 * MIB) + os.urandom(5000))
    return Image(file)


def test_the_disk_becomes_the_image(way, image, disk):
    said = []
    done = way.put(image, lambda what, *_: said.append(what))
    content = image.file.read_bytes()
    with disk.open("rb") as found:
        assert found.read(len(content)) == content
        assert set(found.read()) == {0xA5}
    assert done["written"] == len(content)
    assert not done["repeated"]
    assert said == ["write", "verify"]


def test_what_a_server_cuts_short_is_never_whole(way, image, disk, served, monkeypatch):
    class Short(Provider):
        def stage(self, name):
            (self.folder / "image").write_bytes(image.file.read_bytes()[: 2 * MIB])
            return f"{self.url}/image"

    way._provider = Short(served.folder, served.url)
    with pytest.raises(LabError, match="its SHA-256 is another each time"):
        way.put(image, lambda *_: None)
    assert writer.mark(str(disk)) == {
        "image": image.name.replace("'", "_"),
        "sha256": digest(image),
    }


def digest(image):
    return hashlib.sha256(image.file.read_bytes()).hexdigest()


def test_a_server_without_the_image_is_said_so(way, image, disk, served):
    class Wrong(Provider):
        def stage(self, _name):
            return f"{self.url}/none"

    way._provider = Wrong(served.folder, served.url)
    with pytest.raises(
        LabError, match=r"the board did not get http://.*none: the server was silent"
    ):
        way.put(image, lambda *_: None)


def test_a_disk_that_is_too_small_stays_as_it_is(way, image, disk):
    image.file.write_bytes(os.urandom(7 * MIB))
    said = []
    with pytest.raises(UsageError, match="use a larger disk"):
        way.put(Image(image.file), lambda *_: said.append(1))
    assert set(disk.open("rb").read()) == {0xA5}
    assert said == []


def test_a_disk_that_spoils_a_byte_is_written_twice_and_then_called_bad(way, image, disk):
    def spoil(what, *_):
        if what == "verify":
            with disk.open("r+b") as found:
                found.seek(2 * MIB + 77)
                found.write(b"x")
                os.fsync(found.fileno())

    with pytest.raises(LabError, match=f"in {network._TRIES} tries; replace the disk"):
        way.put(image, spoil)


def test_a_mounted_disk_is_refused(way, image, disk, tmp_path):
    (tmp_path / "mnt").mkdir()
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", str(disk)], check=True)
    subprocess.run(["mount", str(disk), str(tmp_path / "mnt")], check=True)
    bench = Bench()
    way._bench = bench
    try:
        with pytest.raises(LabError, match="is mounted on the board"):
            way.put(image, lambda *_: None)
    finally:
        bench.close()
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)
