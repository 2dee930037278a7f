"""What a system in memory does with an image, in busybox here: HTTP, a disk, reading it back."""

import contextlib
import functools
import http.server
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
from selftests.provision.imagelab import MIB, USED, Image, assert_equal, used_card
from selftests.provision.test_ways import board
from selftests.support import web


class Bench:
    """A system in memory: busybox's shell and programs, with a /tmp that is its own."""

    def __init__(self):
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
        assert medium == "network"
        yield self._shell

    def close(self):
        self._system.kill()
        self._system.wait()
        self._system.stdout.close()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Sends a file, and in its middle does what the server's `fault` says."""

    def copyfile(self, source, outputfile):
        outputfile.write(source.read(2 * MIB))
        outputfile.flush()
        if self.server.fault(self):
            super().copyfile(source, outputfile)


@pytest.fixture
def served(tmp_path):
    """What Labgrid's HTTPProviderDriver does, with a server of the file that it is told, or of `other`."""
    folder = tmp_path / "served"
    folder.mkdir()
    with web.serving(functools.partial(Handler, directory=str(folder))) as server:
        server.fault, server.other = lambda _: True, None

        def stage(name):
            (folder / "image").symlink_to(server.other or name)
            return f"{server.url}/image"

        server.stage = stage
        yield server


@pytest.fixture
def disk(tmp_path, loop):
    return loop(used_card(tmp_path / "disk", 6 * MIB))


@pytest.fixture
def way(tmp_path, disk, served, monkeypatch):
    monkeypatch.setattr(Target, "get_driver", lambda *_: served)
    bench = Bench()
    yield NetworkWay(Target("main"), board(tmp_path, device=str(disk)), bench)
    bench.close()


def test_the_disk_becomes_the_image(way, image, disk):
    before = []
    way.put(image, lambda: before.append(set(disk.open("rb").read())))
    subprocess.run(["sync"], check=True)
    assert_equal(disk, image)
    assert before == [{USED}]


def refused(way, image, error, said):
    """Nothing is begun."""
    begun = []
    with pytest.raises(error, match=said):
        way.put(image, lambda: begun.append(1))
    assert not begun


def failed(way, image, said):
    with pytest.raises(LabError, match=said):
        way.put(image, lambda: None)


def test_a_disk_that_is_too_small_stays_as_it_is(way, tmp_path, disk):
    refused(way, Image(tmp_path / "large", 7 * MIB), UsageError, "use a larger disk")
    assert set(disk.open("rb").read()) == {USED}


def test_a_mounted_disk_is_refused(mounted, way, image):
    way._device = str(mounted)
    refused(way, image, LabError, "is mounted on the board")


class Says:
    """A bench whose system in memory does not come (`starts`), goes, or says only this."""

    def __init__(self, starts, text=""):
        self._starts, self._text = starts, text

    @contextlib.contextmanager
    def started_from(self, _medium):
        if not self._starts:
            raise BoardError("the board did not reach shell")
        yield self

    def run(self, *_):
        if not self._text:
            raise BoardError("the board stopped answering on the console")
        return ShellReply(0, self._text)


def test_an_sd_card_is_not_taken_for_the_emmc(way, image, tmp_path):
    way._bench, way._board = Says(True, "9999999\ntype SD\n"), board(tmp_path, "emmc")
    refused(way, image, LabError, "is an SD card this time")


@pytest.mark.parametrize(("starts", "reason"), [(False, "reach shell"), (True, "stopped answering")])
def test_a_system_in_memory_that_does_not_come_or_goes_is_the_lab_s(way, image, starts, reason):
    way._bench = Says(starts)
    refused(way, image, LabError, f"did not write .*{reason}.*; check the TFTP server, its files")


def test_what_a_server_cuts_short_is_never_whole(way, image, tmp_path, served):
    served.other = tmp_path / "short"
    served.other.write_bytes(image.data[: 2 * MIB])
    failed(way, image, "reads back with SHA-256")


def test_a_server_without_the_image_is_said_so(way, image, served):
    served.other = "none"
    failed(way, image, r"did not get http://.*wget: .*404")


def test_a_server_that_falls_silent_is_said_so(way, image, served, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(network, "SILENCE_S", 1)
    served.fault = lambda _: over.wait(60) and False
    try:
        failed(way, image, r"http://.*said nothing for 1 s")
    finally:
        over.set()


def test_a_connection_that_is_cut_is_said_so(way, image, served):
    served.fault = lambda handler: handler.connection.close()
    failed(way, image, r"the board did not get http://")


def test_a_server_that_is_too_slow_is_given_up(way, image, served, monkeypatch):
    monkeypatch.setattr(network, "_LOOK_S", 4.0)
    monkeypatch.setattr(network, "_SLOWEST", 1 << 40)
    served.fault = lambda _: time.sleep(20) or True
    failed(way, image, r"getting http://.* did not end within 4 s: the network or")


def test_a_write_protected_disk_is_said_so(way, image, loop, tmp_path):
    card = used_card(tmp_path / "protected", 6 * MIB)
    way._device = str(loop(card, "--read-only"))
    failed(way, image, r"cannot write it \(dd: .*protected\?")
    assert set(card.read_bytes()) == {USED}


def test_a_disk_that_dies_in_the_middle_is_said_so(way, image, dying):
    way._device = str(dying)
    failed(way, image, r"cannot write it \(dd: .*replace it")
