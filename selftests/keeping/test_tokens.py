"""What long-lived processes of ours inherit; the lab of a virtual EVM: virtual/test_bench_life.py."""

import contextlib
import os
import socket
from pathlib import Path

from evmperf.lab.stamper import StampedPort
from evmperf.model.places import for_children

SECRETS = dict.fromkeys(("CI_JOB_TOKEN", "EVMPERF_INFLUX_TOKEN", "EVMPERF_HOLD", "MY_OWN"), "s3cret")


def test_the_stamper_inherits_no_token(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = StampedPort("raw", "127.0.0.1", server.getsockname()[1], 115200, 20.0)
        with contextlib.closing(port):
            inherited = Path(f"/proc/{port._process.pid}/environ").read_bytes().decode()
    assert "s3cret" not in inherited
    assert f"PATH={os.environ['PATH']}\0" in inherited


def test_what_is_not_named_is_not_handed_on():
    given = {**SECRETS, "HOME": "/h", "LC_ALL": "C", "PYTHONPATH": "/x", "http_proxy": "u:p@h"}
    path = os.pathsep.join([str(Path(__file__).parents[2]), "/x"])
    assert for_children(given) == {"HOME": "/h", "LC_ALL": "C", "PYTHONPATH": path}
