"""`env/am64x.yaml` in a Labgrid place: coordinator and exporter on loopback, and a virtual EVM as
the place's board, which differs by its boot medium alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import client, image

from evmperf.measure.hostload import slowness
from evmperf.measure.runs import spool
from selftests.support import spools
from selftests.support.ports import free_port

pytestmark = pytest.mark.virtual_evm

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PLACE = "virtual-am64x"


class Lab:
    """The coordinator's address, and what talks to it."""

    def __init__(self, coordinator: str) -> None:
        self.environment = {**os.environ, "LG_COORDINATOR": coordinator, "LG_PLACE": PLACE}

    def client(self, *arguments: str) -> str:
        done = subprocess.run(
            [BIN / "labgrid-client", "-p", PLACE, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    image.build("virtual", progress=print)
    bench = client.LabClient(f"lab{os.getpid()}")
    bench.start("virtual", serial_port=0, power_port=0)
    exported = {
        "virtual-lab": {
            "NetworkSerialPort": {
                "host": "127.0.0.1",
                "port": bench.record.serial_port,
                "protocol": "raw",
                "speed": 10_000_000,  # QEMU's UART knows no baud rate
            },
            "NetworkPowerPort": {
                "model": "rest",
                "host": f"http://127.0.0.1:{bench.record.power_port}/power/{{index}}",
                "index": "0",
            },
        }
    }
    (tmp_path / "exporter.yaml").write_text(yaml.safe_dump(exported))
    address = f"127.0.0.1:{free_port()}"
    servers = [start(tmp_path, "labgrid-coordinator", "--listen", address)]
    try:
        lab = Lab(address)
        await_line(lambda: lab.client("places") is not None)
        export = ["--coordinator", address, "--name", "virtual", "--hostname", "127.0.0.1"]
        servers.append(start(tmp_path, "labgrid-exporter", *export, "exporter.yaml"))
        await_line(lambda: lab.client("resources").count("virtual-lab") == 2)
        lab.client("create")
        lab.client("add-match", "virtual/virtual-lab/*")
        lab.client("acquire")
        yield lab
        lab.client("release")
    finally:
        for server in reversed(servers):
            server.terminate()
            server.wait(30)
        bench.stop()


def start(folder: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{program}.log").open("w") as log:
        return subprocess.Popen([BIN / program, *arguments], cwd=folder, stdout=log, stderr=log)


def await_line(holds) -> None:
    deadline = time.monotonic() + 60 * slowness()
    while True:
        try:
            if holds():
                return
        except subprocess.CalledProcessError:
            pass
        assert time.monotonic() < deadline, "the lab did not come up"
        time.sleep(0.2)


def test_a_board_in_a_place_is_booted_and_measured_with_its_own_file(lab: Lab, tmp_path: Path) -> None:
    text = (REPOSITORY / "env" / "am64x.yaml").read_text()
    assert text.count("medium: sd") == 1
    board_file = tmp_path / "am64x.yaml"
    board_file.write_text(text.replace("medium: sd", "medium: virtio"))
    done = subprocess.run(
        [
            BIN / "pytest",
            "--lg-env",
            board_file,
            "--profile",
            "quick",
            f"--results={tmp_path / 'results'}",
            "-k",
            "default_rootfs or (emmc_raw_fio and 4k)",
            "--boots=1",
        ],
        cwd=REPOSITORY,
        env=lab.environment,
        capture_output=True,
        text=True,
        timeout=300 * slowness(),
        check=False,
    )
    folder = next((tmp_path / "results").glob("am64xx-hsevm-*"))
    boot, emmc = spools.cases_of(folder)
    assert boot.status == "measured", done.stdout
    assert len(boot.values("boot_time")) == 1
    run = spool.read_run(folder)
    assert run.place == PLACE
    assert run.facts.kernel
    # This place's board has no partition labelled evmperf, and nothing else may be overwritten.
    assert emmc.status == "failed"
    assert "/dev/disk/by-partlabel/evmperf does not exist" in emmc.failures[0].message
    assert done.returncode == 1
