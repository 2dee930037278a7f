"""What long-lived processes of ours inherit, and whose folder the keeper trusts."""

import os
import socket
from pathlib import Path

import pytest

from evmperf.lab.keeping import wire
from evmperf.lab.keeping.claim import KeeperLink
from evmperf.lab.stamper import StampedPort
from evmperf.model.errors import LabError
from evmperf.model.places import for_children
from selftests.support.placelab import end_keeper
from selftests.support.virtualbench import running

SECRETS = {
    "CI": "true",
    "CI_JOB_TOKEN": "s3cret",
    "GITLAB_TOKEN": "s3cret",
    "LAVA_TOKEN": "s3cret",
    "EVMPERF_GITLAB_TOKEN": "s3cret",
    "EVMPERF_LAVA_TOKEN": "s3cret",
    "AWS_SECRET": "s3cret",
    "EVMPERF_INFLUX_TOKEN": "s3cret",
    "EVMPERF_HOLD": "s3cret",
    "MY_OWN": "s3cret",
}


@pytest.fixture
def secrets(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "keeper"
    monkeypatch.setenv("EVMPERF_KEEPER", str(folder))
    return folder


def inherited(pid):
    """The environment that a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def no_secret_in(environment):
    assert SECRETS.keys().isdisjoint(environment)
    assert "s3cret" not in str(environment)
    assert environment["PATH"] == os.environ["PATH"]
    return True


def peer(link):
    """The process at the other end of a Unix socket."""
    credentials = link._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def test_the_keeper_inherits_no_token(folder, secrets):
    link = KeeperLink()
    try:
        environment = inherited(peer(link))
    finally:
        link.close()
        end_keeper(folder)
    assert no_secret_in(environment)
    assert environment["EVMPERF_KEEPER"] == str(folder)


def test_the_stamper_inherits_no_token(secrets):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = StampedPort("raw", "127.0.0.1", server.getsockname()[1], 115200, 20.0)
        try:
            assert no_secret_in(inherited(port._process.pid))
        finally:
            port.close()


@pytest.mark.virtual_evm
def test_the_virtual_lab_inherits_no_token(secrets):
    with running("virtual", "tokens") as bench:
        assert no_secret_in(inherited(bench.record.pid))


def test_what_is_not_named_is_not_handed_on():
    given = {**SECRETS, "HOME": "/h", "LC_ALL": "C", "PYTHONPATH": "/x", "http_proxy": "u:p@h"}
    path = os.pathsep.join([str(Path(__file__).parents[2]), "/x"])
    assert for_children(given) == {"HOME": "/h", "LC_ALL": "C", "PYTHONPATH": path}


def test_a_link_is_no_folder_of_ours(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    with pytest.raises(LabError, match="is a link"):
        wire.folder()
    with pytest.raises(LabError, match="is a link"):
        KeeperLink()
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_lets_others_in_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o770)
    with pytest.raises(LabError, match=r"open to others .mode 770"):
        wire.folder()
    folder.chmod(0o700)
    assert wire.folder() == folder


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to make another's folder")
def test_a_folder_of_another_user_is_refused(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(LabError, match="belongs to user 12345"):
        wire.folder()
