"""What a system in memory does with an image, in busybox here: HTTP, a disk, reading it back."""

import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import threading
import time

import pytest
from labgrid.target import Target

from evmperf.lab.provision import network
from evmperf.lab.provision.network import NetworkWay
from evmperf.lab.tester import CommandTester
from evmperf.measure.bench import ShellReply
from evmperf.model.errors import BoardError, LabError, UsageError
from selftests.provision.cards import USED, Image, used_card
from selftests.provision.imagelab import MIB
from selftests.provision.test_ways import board
from selftests.support import web


class Bench:
    """A system in memory: busybox's shell and programs, with a /tmp that is its own."""

    def __init__(self):
        self.mediums = []
        start = (
            "mount -t tmpfs none /tmp && mkdir /tmp/bin && busybox --install -s /tmp/bin && "
            "echo up && exec sleep 600"
        )
        self._system = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start], stdout=subprocess.PIPE, text=True
        )
        assert self._system.stdout.readline() == "up\n"
        enter = ["nsenter", f"--mount=/proc/{self._system.pid}/ns/mnt", "env", "PATH=/tmp/bin"]
        self._shell = CommandTester([*enter, shutil.which("busybox")], "the system in memory")

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


class Handler(http.server.SimpleHTTPRequestHandler):
    """Sends a file, and in its middle does what the server's `fault` says."""

    def copyfile(self, source, outputfile):
        outputfile.write(source.read(2 * MIB))
        outputfile.flush()
        if self.server.fault(self):
            super().copyfile(source, outputfile)


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Handler, directory=str(folder))
    with web.serving(handler) as server:
        server.fault = lambda _: True
        provider = Provider(folder, server.url)
        provider.server = server
        yield provider


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
    way.put(image, lambda: said.append(set(disk.open("rb").read())))
    content = image.file.read_bytes()
    with disk.open("rb") as found:
        assert found.read(len(content)) == content
        assert set(found.read()) == {USED}
    assert said == [{USED}]


def test_what_a_server_cuts_short_is_never_whole(way, image, tmp_path, served, monkeypatch):
    short = tmp_path / "short"
    short.write_bytes(image.file.read_bytes()[: 2 * MIB])
    stage = served.stage
    monkeypatch.setattr(served, "stage", lambda _: stage(short))
    with pytest.raises(LabError, match="reads back with SHA-256"):
        way.put(image, lambda: None)


def test_a_server_that_falls_silent_is_said_so(way, image, disk, served, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(network, "SILENCE_S", 1)
    served.server.fault = lambda _: over.wait(60) and False
    try:
        with pytest.raises(LabError, match=r"http://.*said nothing for 1 s"):
            way.put(image, lambda: None)
    finally:
        over.set()


def test_a_connection_that_is_cut_is_said_so(way, image, disk, served):
    served.server.fault = lambda handler: handler.connection.close()
    with pytest.raises(LabError, match=r"the board did not get http://"):
        way.put(image, lambda: None)


def test_a_server_that_is_too_slow_is_given_up(way, image, disk, served, monkeypatch):
    monkeypatch.setattr(network, "_LOOK_S", 4.0)
    monkeypatch.setattr(network, "_SLOWEST", 1 << 40)
    served.server.fault = lambda _: time.sleep(20) or True
    with pytest.raises(LabError, match=r"getting http://.* did not end within 4 s: the network or"):
        way.put(image, lambda: None)


def test_a_write_protected_disk_is_said_so(way, image, loop, tmp_path):
    card = used_card(tmp_path / "protected", 6 * MIB)
    way._device = str(loop(card, "--read-only"))
    with pytest.raises(LabError, match=r"cannot write it \(dd: .*protected\?"):
        way.put(image, lambda: None)
    assert set(card.read_bytes()) == {USED}


def test_a_disk_that_dies_in_the_middle_is_said_so(way, image, dying):
    way._device = str(dying)
    with pytest.raises(LabError, match=r"cannot write it \(dd: .*replace it"):
        way.put(image, lambda: None)


def test_an_sd_card_is_not_taken_for_the_emmc(way, image, tmp_path):
    class Says(Lost):
        def run(self, *_):
            return ShellReply(0, "9999999\ntype SD\n")

    way._bench, way._board = Says(True), board(tmp_path, "emmc")
    with pytest.raises(LabError, match="is an SD card this time"):
        way.put(image, lambda: None)


class Lost:
    """A bench whose system in memory does not come, or goes."""

    def __init__(self, starts):
        self._starts = starts

    @contextlib.contextmanager
    def started_from(self, _medium):
        if not self._starts:
            raise BoardError("the board did not reach shell")
        yield self

    def run(self, *_):
        raise BoardError("the board stopped answering on the console")


@pytest.mark.parametrize(
    ("starts", "reason"),
    [
        (False, "did not write .*shell; check the TFTP server, its files"),
        (True, "did not write .*console; check .*write the image again"),
    ],
)
def test_a_system_in_memory_that_does_not_come_or_goes_is_the_lab_s(way, image, starts, reason):
    way._bench = Lost(starts)
    with pytest.raises(LabError, match=reason):
        way.put(image, lambda: None)


def test_a_server_without_the_image_is_said_so(way, image, served, monkeypatch):
    monkeypatch.setattr(served, "stage", lambda _: f"{served.url}/none")
    with pytest.raises(LabError, match=r"http://.*none: wget: .*404"):
        way.put(image, lambda: None)


def test_a_disk_that_is_too_small_stays_as_it_is(way, image, disk):
    image.file.write_bytes(os.urandom(7 * MIB))
    said = []
    with pytest.raises(UsageError, match="use a larger disk"):
        way.put(Image(image.file), lambda: said.append(1))
    assert set(disk.open("rb").read()) == {0xA5}
    assert said == []


def test_a_mounted_disk_is_refused(way, image, disk, tmp_path):
    (tmp_path / "mnt").mkdir()
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", str(disk)], check=True)
    subprocess.run(["mount", str(disk), str(tmp_path / "mnt")], check=True)
    bench = Bench()
    way._bench = bench
    try:
        with pytest.raises(LabError, match="is mounted on the board"):
            way.put(image, lambda: None)
    finally:
        bench.close()
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)
