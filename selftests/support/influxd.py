"""A real InfluxDB of our own: started, frozen, killed, with its disk full."""

import contextlib
import csv
import io
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import requests

from evmperf.measure.runs.folders import cache_dir
from evmperf.publish.influx.client import Config, Store
from selftests.support.ports import free_port

ORG, TOKEN = "lab", "a-token-that-must-not-show"


def built(version):
    """The servers of a version that `make influxd` leaves, the newest last."""
    return sorted((cache_dir() / "influxd").glob(f"{version}-*/influxd"), key=lambda p: p.stat().st_mtime)


def binary():
    """The server of version $INFLUXD that `make influxd` leaves, else one on PATH; there is no skipping."""
    version = os.environ.get("INFLUXD", "2.10")
    there = built(version)
    found = there[-1] if there else shutil.which("influxd")
    assert found, f"these tests need InfluxDB's server: make influxd INFLUXD={version}"
    return Path(found)


class Influxd:
    """The server, with its data in `folder`; with `small`, on a disk of that many bytes."""

    def __init__(self, folder, small=0):
        self.folder = folder
        self._small = small
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._buckets = 0

    def start(self):
        self.folder.mkdir(exist_ok=True)
        command = [
            str(binary()),
            "--reporting-disabled",
            f"--http-bind-address=127.0.0.1:{self.port}",
            f"--engine-path={self.folder}/engine",
            f"--bolt-path={self.folder}/influxd.bolt",
            f"--sqlite-path={self.folder}/influxd.sqlite",
            "--log-level=warn",
        ]
        if self._small:
            # The disk is gone with the last process that sees it: a shell stays and starts anew.
            mount = f"mount -t tmpfs -o size={self._small} tmpfs {self.folder} && while :; do "
            command = ["unshare", "-rm", "sh", "-c", f"{mount} {' '.join(command)}; done"]
        with (self.folder.parent / "influxd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait()

    def _wait(self):
        assert self._process
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                requests.get(f"{self.url}/api/v2/setup", timeout=5).raise_for_status()
                return
            assert self._process.poll() is None, (self.folder.parent / "influxd.log").read_text()
            assert time.monotonic() < deadline, "influxd does not answer"
            time.sleep(0.05)

    def setup(self):
        """Make organisation and token, once for a new data folder."""
        self.api("setup", username="lab", password="selftests", org=ORG, bucket="first", token=TOKEN)

    def api(self, path, **body):
        header = {"Authorization": f"Token {TOKEN}"}
        method, url = "POST" if body else "GET", f"{self.url}/api/v2/{path}"
        reply = requests.request(method, url, json=body or None, headers=header, timeout=30)
        reply.raise_for_status()
        return reply.json()

    def bucket(self, retention_s=0):
        """A new bucket, empty."""
        self._buckets += 1
        name = f"bucket{self._buckets}"
        org = self.api("orgs")["orgs"][0]["id"]
        rules = [{"type": "expire", "everySeconds": retention_s}] if retention_s else []
        self.api("buckets", name=name, orgID=org, retentionRules=rules)
        return Config(self.url, ORG, name, TOKEN)

    @property
    def pid(self):
        assert self._process
        return self._process.pid

    def signal(self, number):
        os.kill(self.pid, number)

    def restart_on_small_disk(self):
        """Kill the server and leave the disk as it is."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        self._wait()

    def stop(self):
        """Kill it without warning."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running(folder, small=0):
    server = Influxd(folder, small)
    try:
        server.start()
        server.setup()
        yield server
    finally:
        server.stop()


def points(config, measurement="", **tags):
    """How many points the bucket has (each counted once, by a field that samples or all others have)."""
    which = "".join(f' and r.{name} == "{value}"' for name, value in tags.items())
    named = f'r._measurement == "{measurement}"' if measurement else "true"
    flux = f"""
from(bucket: bucket) |> range(start: 0)
|> filter(fn: (r) => (r._field == "run" or r._field == "repetition") and {named}{which})
|> group() |> count()
"""
    with Store(config) as store:
        return sum(row["_value"] for row in store.query(flux))


def flux(config, query):
    """The rows of a query as the server's CSV has them, sent as Grafana sends it."""
    url, header = f"{config.url}/api/v2/query?org={config.org}", {"Authorization": f"Token {config.token}"}
    body = {"query": query, "type": "flux", "dialect": {"header": True}}
    reply = requests.post(url, json=body, headers=header, timeout=60)
    text = reply.content.decode()
    assert reply.ok, f"{text}\n{query}"
    blocks = text.replace("\r", "").split("\n\n")
    return [row for block in blocks for row in csv.DictReader(io.StringIO(block))]
