"""An image for a disk that only the board reaches: TFTP, HTTP, NVMe, on a virtual EVM."""

import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from labgrid import Environment

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.lab.bench import LabgridBench
from evmperf.model.errors import LabError
from evmperf.provision import network, writer
from evmperf.provision.cache import Cache
from evmperf.provision.installation import Installation
from evmperf.provision.network import NetworkWay, WrongCard
from evmperf.virtual import envfile, image, release
from evmperf.virtual.client import Bench
from selftests.provision import imagelab
from selftests.provision.imagelab import Spec
from selftests.provision.sessions import measure, measure_in_turn

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_provisioning]

VARIANT = "virtual-net"
TESTER = "192.168.100.1"


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    files = [folder / f"{release.name(VARIANT, number)}.wic.zst" for number in (1, 2)]
    for number, file in enumerate(files, 1):
        release.build(VARIANT, number, file, print)
    return files


@dataclass
class Lab:
    """A board, its file, and the lab's two servers."""

    bench: Bench
    file: Path
    tftp: subprocess.Popen
    web: subprocess.Popen

    @property
    def disks(self):
        return self.bench.folder / "disks"

    def beside(self, *words):
        """Run a command on the tester."""
        subprocess.run([*self.bench.status().tester.command, *words], check=True)

    def change(self, **options):
        """Change the board file's options, by section."""
        data = yaml.safe_load(self.file.read_text())
        for section, words in options.items():
            data["targets"]["main"]["options"][section].update(words)
        self.file.write_text(yaml.safe_dump(data, sort_keys=False))


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A board in a lab with servers for TFTP and HTTP; its other disks stay as they are."""
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
    there = Lab(bench, board_file(tmp_path / "net.yaml", bench, served), *servers)
    before = other_disks(there.disks)
    try:
        yield there
        bench.off()
        assert other_disks(there.disks) == before
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        bench.stop()


def other_disks(folder):
    """What is on the disks that no test here is to write."""
    return {
        name: hashlib.file_digest((folder / name).open("rb"), "sha256").hexdigest()
        for name in ("sd.img",)
    }


def board_file(file, bench, served):
    """A copy of the variant's own, with this lab's ports and folder."""
    ports = bench.ports
    envfile.write(envfile.source(VARIANT), file, serial_port=ports.serial, power_port=ports.power)
    data = yaml.safe_load(file.read_text())
    main = data["targets"]["main"]
    main["resources"]["HTTPProvider"]["internal"] = f"{served}/"
    main["resources"]["TFTPProvider"]["internal"] = f"{served.parent / 'tftp'}/"
    main["drivers"]["K3BootStrategy"].update(kernel_timeout=300, boot_timeout=300)
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


def test_an_image_goes_to_the_board_s_disk_and_boots_from_there(lab, releases):
    with installation(lab.file) as work:
        outcome = work.install(str(releases[0]))
        assert outcome.runs.release == "virtual-net-2026.01"
        assert outcome.runs.device == "/dev/nvme0n1p2"
        assert outcome.runs.root == outcome.image.identity.root
        assert outcome.facts["scratch"] == "/dev/nvme0n1p3"
        assert work.install(str(releases[0])).left_alone
        work.bench.off()
    # Byte for byte, but for what the board itself has written since: the first file system.
    with (lab.disks / "nvme.img").open("rb") as found, outcome.image.content.open("rb") as wanted:
        found.seek(1 << 20)
        wanted.seek(1 << 20)
        assert found.read(16 << 20) == wanted.read(16 << 20)


def test_each_session_measures_the_release_it_was_given_and_says_so(lab, releases, tmp_path):
    results = tmp_path / "results"
    measure_in_turn(lab.file, releases, results)
    # And a kernel alone, which is not written anywhere.
    content = (image.build(VARIANT, progress=print).directory / "Image").read_bytes()
    own = tmp_path / "Image-own"
    own.write_bytes(re.sub(rb"#\d (SMP [^\0\n]*)", rb"#7 \1", content))
    run = measure(lab.file, results, "--kernel", own)
    assert " #7 SMP" in run["facts"]["netboot"]["kernel"]["version"]


def test_a_server_that_is_away_is_said_so_and_the_disk_is_never_booted(lab, small):
    lab.web.terminate()
    lab.web.wait()
    with installation(lab.file) as work:
        with pytest.raises(LabError, match="the board did not get http://192"):
            work.install(str(small))
        assert not lab.bench.status().power
        with pytest.raises(LabError, match="was interrupted"):
            work.bench.shell()
        assert not lab.bench.status().power
    assert writer.mark(str(lab.disks / "nvme.img"))["image"] == small.name


@pytest.fixture
def small(tmp_path):
    """An image for this machine that nobody boots: for what goes wrong before that."""
    root = Spec().root | {"etc/hostname": VARIANT.encode()}
    return imagelab.build(tmp_path / "small.wic", Spec(root=root))


def test_a_tftp_server_that_is_silent_is_said_so_and_nothing_written(lab, small):
    lab.tftp.terminate()
    lab.tftp.wait()
    data = yaml.safe_load(lab.file.read_text())
    strategy = data["targets"]["main"]["drivers"]["K3BootStrategy"]
    strategy["retries"] = 0
    strategy["media"]["network"].insert(0, "setenv tftptimeoutcountmax 2")
    lab.file.write_text(yaml.safe_dump(data, sort_keys=False))
    with installation(lab.file) as work:
        with pytest.raises(LabError, match="over TFTP: nothing comes from the server"):
            work.install(str(small))
        assert not work.known().writing
    assert not lab.bench.status().power
    assert not any((lab.disks / "nvme.img").open("rb").read(1 << 20))


def cut_in_mid_write(disk, cut):
    """Call `cut` once the board has written some of its disk; returns the thread."""

    def watch():
        before = disk.stat().st_blocks
        while disk.stat().st_blocks < before + (40 << 11):
            time.sleep(0.1)
        cut()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("what", ["link", "power"])
def test_a_cut_in_mid_write_leaves_a_disk_that_nobody_boots(lab, releases, monkeypatch, what):
    monkeypatch.setattr(network, "SILENCE_S", 10)
    monkeypatch.setattr(network, "_limit", lambda _: 240.0)
    disk = lab.disks / "nvme.img"
    cut, said = {
        "link": (
            lambda: lab.beside("ip", "link", "set", "evm0", "down"),
            "the server said nothing",
        ),
        "power": (lab.bench.off, "the board was lost while it wrote"),
    }[what]
    with installation(lab.file) as work:
        cut_in_mid_write(disk, cut)
        with pytest.raises(LabError, match=said):
            work.install(str(releases[0]))
        assert work.known().writing
    assert not lab.bench.status().power
    assert writer.mark(str(disk))["image"] == releases[0].name


def test_an_image_goes_to_the_emmc_as_well(lab, small):
    lab.change(image={"device": "/dev/mmcblk0", "scratch_mib": 0}, boot={"medium": "emmc"})
    environment = Environment(str(lab.file))
    try:
        target = environment.get_target("main")
        board = benchmarks.board(lab.file)
        way = NetworkWay(target, board, LabgridBench(target, board))
        given = Cache().get(str(small))
        done = None
        while done is None:
            # The cards' drivers are probed side by side.
            with contextlib.suppress(WrongCard):
                done = way.put(given, lambda *_: None)
        assert done["written"] == given.hashes.size
    finally:
        environment.cleanup()
    lab.bench.off()
    with (lab.disks / "emmc.img").open("rb") as found:
        assert found.read(given.hashes.size) == small.read_bytes()
