"""What long-lived processes of ours inherit."""

import os
import socket
from pathlib import Path

import pytest

from evmperf.lab.stamper import StampedPort
from evmperf.model.places import for_children
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


def inherited(pid):
    """The environment that a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def no_secret_in(environment):
    assert SECRETS.keys().isdisjoint(environment)
    assert "s3cret" not in str(environment)
    assert environment["PATH"] == os.environ["PATH"]
    return True


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
