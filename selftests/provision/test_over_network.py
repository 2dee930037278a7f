"""An image for a disk that only the board reaches: TFTP, HTTP, NVMe, on a virtual EVM."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import image, rootfs
from evmperf_virtual.client import LabClient
from labgrid import Environment

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.lab.bench import LabgridBench
from evmperf.lab.provision.installation import Installation
from selftests.provision import imagelab
from selftests.support import cardimage, programs, virtualbench

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_provisioning]

VARIANT = "virtual-net"
TESTER = "192.168.100.1"


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    return imagelab.releases(VARIANT, tmp_path_factory.mktemp("releases"))


@dataclass
class Lab:
    """A board and its file; `written` is the disk that a test writes."""

    bench: LabClient
    file: Path
    written: str = "nvme"

    @property
    def disks(self):
        return self.bench.folder / "disks"

    def contents(self):
        """What is on each disk; the firmware's is the boot ROM's."""
        return {
            disk.stem: hashlib.file_digest(disk.open("rb"), "sha256").hexdigest()
            for disk in sorted(self.disks.glob("*.img"))
            if disk.stem != "firmware"
        }

    @contextlib.contextmanager
    def changed(self):
        """The board file's one target, to be changed."""
        data = yaml.safe_load(self.file.read_text())
        yield data["targets"]["main"]
        self.file.write_text(yaml.safe_dump(data, sort_keys=False))


@pytest.fixture
def lab(tmp_path, state):
    """A board in a lab with servers for TFTP and HTTP; its other disks stay as they are."""
    built = image.build(VARIANT, progress=print)
    tftp, served = tmp_path / "tftp", tmp_path / "http"
    tftp.mkdir()
    served.mkdir()
    for name in ("Image", "installer"):
        shutil.copyfile(built.directory / name, tftp / name)
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(virtualbench.running(VARIANT, "net"))
        stack.enter_context(beside(bench, *DNSMASQ, f"--tftp-root={tftp}"))
        stack.enter_context(beside(bench, *HTTPD, "-d", served))
        there = Lab(bench, board_file(bench, served))
        before = there.contents()
        assert there.written in before
        yield there
        bench.off()
        assert {**before, there.written: ""} == {**there.contents(), there.written: ""}


DNSMASQ = [
    "dnsmasq",
    "--no-daemon",
    "--conf-file=/dev/null",
    "--port=0",
    "--enable-tftp",
    "--user=root",
    "--pid-file=",
]
HTTPD = [sys.executable, "-m", "http.server", "-b", TESTER, "8000"]


@contextlib.contextmanager
def beside(bench, *words):
    """A server on the tester, beside the board."""
    server = subprocess.Popen(
        [*bench.status().tester.command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield server
    finally:
        server.terminate()
        server.wait()


def board_file(bench, served):
    """A copy of the variant's own, with this lab's ports and folder."""
    file = virtualbench.board_file(bench, VARIANT, served.parent)
    data = yaml.safe_load(file.read_text())
    main = data["targets"]["main"]
    main["resources"]["HTTPProvider"]["internal"] = f"{served}/"
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
        assert outcome.runs.root == outcome.image.identity.root
        assert work.install(str(releases[0])).left_alone
        work.bench.off()
    assert_boot_partition(lab.disks / "nvme.img", outcome.image)


def assert_boot_partition(disk, given):
    """The first file system, byte for byte: in the other the board itself has written since."""
    with disk.open("rb") as found, given.content.open("rb") as wanted:
        found.seek(1 << 20)
        wanted.seek(1 << 20)
        assert found.read(16 << 20) == wanted.read(16 << 20)


def test_each_session_measures_the_release_it_was_given_and_says_so(lab, releases, tmp_path):
    for release in releases:
        name = release.name.removesuffix(".wic.zst")
        words = ["--image", release, f"--results={tmp_path / name}", "-k", "boot_time and init"]
        done = programs.pytest("--lg-env", lab.file, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        (run,) = (json.loads(file.read_text()) for file in (tmp_path / name).glob("*/run.json"))
        assert (run["release"], run["facts"]["provisioned"]["name"]) == (name, release.name)
        assert f"the board runs {release.name}: {name}" in done.stdout


def only_busybox(root):
    """Leave of a root file system a few mebibytes, for a slow disk: busybox and its shell."""
    keep = {name: (root / name).read_bytes() for name in ("usr/bin/busybox", "usr/lib/os-release")}
    shutil.rmtree(root / "usr")
    for name, content in keep.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(content)
        (root / name).chmod(0o755)
    rootfs.link(root / "usr/sbin/init", "/usr/bin/busybox")
    rootfs.link(root / "usr/bin/sh", "/usr/bin/busybox")
    rootfs.write(root / "etc/passwd", "root::0:0:root:/root:/bin/sh\n")
    rootfs.write(root / "etc/profile", "export PS1='root@small:~# '\n")
    rootfs.write(root / "etc/init.d/rcS", SMALL_START)
    (root / "etc/init.d/rcS").chmod(0o755)


SMALL_START = """#!/bin/sh
/usr/bin/busybox mount -t proc proc /proc
/usr/bin/busybox mount -t sysfs sys /sys
/usr/bin/busybox --install -s /usr/bin
"""


def test_an_image_goes_to_the_emmc_and_boots_from_there(lab, tmp_path):
    lab.written = "emmc"
    with lab.changed() as board:
        board["options"]["image"]["device"] = "/dev/mmcblk0"
        board["options"]["boot"]["medium"] = "emmc"
    file = tmp_path / f"{cardimage.name(VARIANT, 3)}.wic.zst"
    cardimage.build(VARIANT, 3, file, print, change=only_busybox, root_mib=64)
    with installation(lab.file) as work:
        outcome = work.install(str(file))
        assert outcome.runs.release == "virtual-net-2026.03"
        work.bench.off()
    assert_boot_partition(lab.disks / "emmc.img", outcome.image)
