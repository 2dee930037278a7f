"""An image for a disk that only the board reaches: TFTP, HTTP, NVMe, on a virtual EVM."""

import contextlib
import shutil
import subprocess
import sys

import pytest
import yaml
from labgrid import Environment

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.lab.bench import LabgridBench
from evmperf.model.errors import LabError
from evmperf.provision import writer
from evmperf.provision.installation import Installation
from evmperf.virtual import envfile, image, release
from evmperf.virtual.client import Bench

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_provisioning]

VARIANT = "virtual-net"
TESTER = "192.168.100.1"


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    file = tmp_path_factory.mktemp("release") / f"{release.name(VARIANT, 1)}.wic.zst"
    release.build(VARIANT, 1, file, print)
    return file


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A board in a lab with servers for TFTP and HTTP: its bench, board file, and HTTP server."""
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    built = image.build(VARIANT, progress=print)
    bench = Bench("net")
    bench.start(VARIANT, serial_port=0, power_port=0)
    tftp, served = tmp_path / "tftp", tmp_path / "http"
    tftp.mkdir()
    served.mkdir()
    for name in ("Image", "installer"):
        shutil.copyfile(built.directory / name, tftp / name)
    beside = bench.status().tester.command
    servers = [
        subprocess.Popen(
            [
                *beside, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0",
                "--enable-tftp", f"--tftp-root={tftp}", "--user=root", "--pid-file=",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ),
        subprocess.Popen(
            [*beside, sys.executable, "-m", "http.server", "-d", served, "-b", TESTER, "8000"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ),
    ]  # fmt: skip
    try:
        yield bench, board_file(tmp_path / "net.yaml", bench, served), servers[1]
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        bench.stop()


def board_file(file, bench, served):
    """A copy of the variant's own, with this lab's ports and folder."""
    ports = bench.ports
    envfile.write(envfile.source(VARIANT), file, serial_port=ports.serial, power_port=ports.power)
    data = yaml.safe_load(file.read_text())
    main = data["targets"]["main"]
    main["resources"]["HTTPProvider"]["internal"] = f"{served}/"
    main["drivers"]["K3BootStrategy"].update(boot_timeout=240)
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    return file


@contextlib.contextmanager
def installation(file):
    environment = Environment(str(file))
    try:
        target = environment.get_target("main")
        board = benchmarks.board(file)
        yield Installation(target, board, LabgridBench(target, board), tell=print)
    finally:
        environment.cleanup()


def test_an_image_goes_to_the_board_s_disk_and_boots_from_there(lab, packed):
    bench, file, _ = lab
    with installation(file) as work:
        outcome = work.install(str(packed))
        assert outcome.runs.release == "virtual-net-2026.01"
        assert outcome.runs.device == "/dev/nvme0n1p2"
        assert outcome.runs.root == outcome.image.identity.root
        assert outcome.facts["scratch"] == "/dev/nvme0n1p3"
        work.bench.off()
    # Byte for byte, but for what the board itself has written since: the first file system.
    disk, content = bench.folder / "disks/nvme.img", outcome.image.content
    with disk.open("rb") as found, content.open("rb") as wanted:
        found.seek(1 << 20)
        wanted.seek(1 << 20)
        assert found.read(16 << 20) == wanted.read(16 << 20)


def test_a_server_that_is_away_is_said_so_and_the_disk_is_never_booted(lab, packed):
    bench, file, web = lab
    web.terminate()
    web.wait()
    with installation(file) as work:
        with pytest.raises(LabError, match="the board did not get http://192"):
            work.install(str(packed))
        with pytest.raises(LabError, match="was interrupted"):
            work.bench.shell()
        assert not bench.status().power
    assert writer.mark(str(bench.folder / "disks/nvme.img"))["image"] == packed.name
