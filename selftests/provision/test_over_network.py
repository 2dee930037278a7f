"""An image for a disk that only the board reaches: TFTP, HTTP, NVMe, on a virtual EVM."""

import contextlib
import json
import shutil
import subprocess
import sys

import pytest
import yaml
from evmperf_virtual import image

from selftests.support import programs, virtualbench

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_provisioning]

VARIANT = "virtual-net"
TESTER = "192.168.100.1"
DNSMASQ = "dnsmasq --no-daemon --conf-file=/dev/null --port=0 --enable-tftp --user=root --pid-file="
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


@pytest.fixture
def lab(tmp_path, state):
    """A board in a lab with servers for TFTP and HTTP, and its file; its other disks stay as they are."""
    built = image.build(VARIANT, progress=print)
    tftp, served = tmp_path / "tftp", tmp_path / "http"
    tftp.mkdir()
    served.mkdir()
    for name in ("Image", "installer"):
        shutil.copyfile(built.directory / name, tftp / name)
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(virtualbench.running(VARIANT, "net"))
        stack.enter_context(beside(bench, *DNSMASQ.split(), f"--tftp-root={tftp}"))
        stack.enter_context(beside(bench, *HTTPD, "-d", served))
        file = virtualbench.board_file(bench, VARIANT, tmp_path)
        data = yaml.safe_load(file.read_text())
        main = data["targets"]["main"]
        main["resources"]["HTTPProvider"]["internal"] = f"{served}/"
        main["drivers"]["K3BootStrategy"].update(kernel_timeout=300, boot_timeout=300)
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        before = virtualbench.disks(bench)
        yield bench, file
        bench.off()
        after = virtualbench.disks(bench)
        assert {name for name in before if before[name] != after[name]} == {"nvme"}


def test_each_session_measures_the_release_it_was_given_and_says_so(lab, releases, tmp_path):
    bench, file = lab
    for release in (*releases, releases[1]):
        name = release.name.removesuffix(".wic.zst")
        folder = tmp_path / name
        again = folder.exists()
        shutil.rmtree(folder, ignore_errors=True)
        words = ["--image", release, f"--results={folder}", "-k", "boot_time and init"]
        done = programs.pytest("--lg-env", file, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        (run,) = (json.loads(file.read_text()) for file in folder.glob("*/run.json"))
        said = run["facts"]["provisioned"]
        assert (run["release"], said["name"], said["left_alone"]) == (name, release.name, again)
        assert f"the board runs {release.name}: {name}" in done.stdout
    bench.off()
    # The first file system, byte for byte: in the other the board itself has written since.
    (content,) = (tmp_path / "http").glob("*")
    with (bench.folder / "disks/nvme.img").open("rb") as found, content.open("rb") as wanted:
        for disk in (found, wanted):
            disk.seek(1 << 20)
        assert found.read(16 << 20) == wanted.read(16 << 20)
