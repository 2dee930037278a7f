"""Images and addresses that somebody made to get at the host, and boards whose way is wrong."""

import json
import threading
from types import SimpleNamespace

import pytest
from labgrid.target import Target

from evmperf.lab import media
from evmperf.lab.provision import download, identity, installation, running
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.record import Book
from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError
from selftests.provision import imagelab
from selftests.provision.test_ways import board

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2f..%2fhome%2f.bashrc.zst",
        "%2e%2e%2fabout.json.zst",
        "%2fhome%2fa.zst",
        "a%00.zst",
        "a%0a.zst",
        "%1b]0;x.zst",
        "%2e%2e",
        "a" * 300 + ".zst",
    ],
)
def test_an_address_names_no_file_of_the_host(server, tmp_path, name):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.bashrc").write_text("ours")
    url = server.url.replace("a.wic.zst", name.replace("home", f"{tmp_path}/home"[1:]))
    with pytest.raises(UsageError, match="not a file name"):
        open_image(url)
    assert (tmp_path / "home/.bashrc").read_text() == "ours"
    assert {path.name for path in tmp_path.iterdir()} <= {"home", "cache"}


def test_the_cache_names_what_it_fetched_and_people_go_by_the_address(server, tmp_path, plain):
    image = open_image(server.url.replace("a.wic.zst", "tisdk%20default.wic.zst"))
    assert image.name == "tisdk default.wic.zst"
    assert image.file.name == "fetched.wic.zst"
    assert image.content.read_bytes() == plain.read_bytes()


def test_a_server_that_does_not_end_is_left(server, monkeypatch):
    monkeypatch.setattr(limits, "DOWNLOAD_BYTES", 1000)
    with pytest.raises(UsageError, match="has more than"):
        open_image(server.url)


def test_a_checksum_without_end_is_not_read_to_its_end(server, monkeypatch):
    ended = threading.Event()

    def endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            self.wfile.write(b"0" * 64 + b"  a.wic\n")
            while True:
                self.wfile.write(bytes(1 << 16))
        except OSError:
            ended.set()

    monkeypatch.setattr(server.RequestHandlerClass, "do_GET", endless)
    assert download.checksum(server.url) == "0" * 64
    assert ended.wait(20)


@pytest.mark.parametrize("kind", imagelab.PACKERS)
def test_an_image_that_unpacks_without_end_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(limits, "IMAGE_BYTES", limits.MIB)
    (tmp_path / "a").write_bytes(imagelab.packed(bytes(2 * limits.MIB), kind))
    with pytest.raises(UsageError, match="unpacks to more than"):
        open_image(str(tmp_path / "a"))
    assert not [file for file in (tmp_path / "cache").rglob("*.*") if not file.name.endswith(".lock")]


def test_a_kernel_that_is_a_bomb_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(identity, "_KERNEL_LIMIT", 1000)
    data = imagelab.packed(bytes(10_000), "zst")
    assert len(identity._unpacked(data)) == 1000


def test_a_board_without_a_way_is_not_guarded(tmp_path):
    prepared = []
    bench = SimpleNamespace(before_power_on=prepared.append)
    installation.guard(Target("main"), board(tmp_path), bench)
    assert prepared == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"device": "/dev/mmcblk0"}, "names no HTTPProvider with its driver"),
        ({"device": "mmcblk0"}, "names no HTTPProvider with its driver"),
        ({"command": "flash it"}, r"image\.command must have \{image\}"),
    ],
)
def test_a_board_whose_way_is_wrong_is_not_booted(tmp_path, monkeypatch, wrong, told):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    there = board(tmp_path, **wrong)
    Book(there).begins("a.wic", "a" * 64)  # half-written, as power failures leave it
    with pytest.raises(UsageError, match=rf"b\.yaml.* {told}"):
        installation.guard(Target("main"), there, None)


@pytest.mark.parametrize("said", ["=superblock\n1 x 61267\n", f"=superblock\n{'9' * 5000} 1 61267\n"])
def test_a_board_that_says_nonsense_of_its_disk_says_nothing(said):
    runs = running.parse(said, "")
    assert (runs.mounts, runs.root) == (None, "")


def test_who_plays_the_card_switch_names_no_file_of_the_user_as_the_card(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    said = {}
    monkeypatch.setattr(media, "ask", lambda *_: json.dumps(said))
    driver = media.VirtualCardDriver.medium.__wrapped__
    switch = type("Switch", (), {"port": SimpleNamespace(host="")})()
    for file in ("/home/user/.ssh/authorized_keys", f"{tmp_path}/state/../.bashrc", ""):
        said["card_file"] = file
        with pytest.raises(LabError, match="no disk of a virtual EVM"):
            driver(switch)
    said["card_file"] = f"{tmp_path}/state/virtual/sd.img"
    assert driver(switch) == said["card_file"]
