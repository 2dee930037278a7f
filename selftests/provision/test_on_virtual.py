"""Releases put on a virtual EVM that boots from its card: written, booted, identified, and every
way in which that goes wrong.
"""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from evmperf_virtual.client import LabClient
from labgrid import Environment

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.lab.bench import LabgridBench
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.installation import Installation
from evmperf.model.errors import LabError, UsageError
from selftests.provision import imagelab
from selftests.support import virtualbench

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-sd"
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    """Two releases that can be told apart, as files that a vendor would publish."""
    return imagelab.releases(VARIANT, tmp_path_factory.mktemp("releases"))


@pytest.fixture
def lab(state, tmp_path):
    """A function that starts a virtual lab; gives its bench and a board file for it.

    What is on the board's other disks must be the same in the end; `nvme` is put on one of them.
    """
    benches, before = [], {}

    def start(nvme=None, **options):
        bench = LabClient(f"card{len(benches)}")
        bench.start(VARIANT, serial_port=0, power_port=0, **options)
        benches.append(bench)
        if nvme:
            with (bench.folder / "disks/nvme.img").open("r+b") as disk:
                disk.write(nvme.read_bytes())
        before[bench.name] = other_disks(bench)
        file = virtualbench.board_file(bench, VARIANT, bench.folder)
        data = yaml.safe_load(file.read_text())
        data["targets"]["main"]["drivers"]["K3BootStrategy"].update(kernel_timeout=180, boot_timeout=240)
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        return bench, file

    yield start
    try:
        for bench in benches:
            bench.off()
            assert other_disks(bench) == before[bench.name]
    finally:
        for bench in benches:
            bench.stop()


@pytest.fixture
def install(request):
    """A function that gives an installation on a board file, and keeps what it tells."""

    def open_it(file):
        environment = Environment(str(file))
        request.addfinalizer(environment.cleanup)
        target = environment.get_target("main")
        board = benchmarks.board(file)
        told = []
        work = Installation(target, board, LabgridBench(target, board), tell=told.append)
        work.told = told
        return work

    return open_it


def other_disks(bench):
    """What is on the disks that are not the card, nor the firmware that the boot ROM loads."""
    folder = bench.folder / "disks"
    return {
        file.name: hashlib.file_digest(file.open("rb"), "sha256").hexdigest()
        for file in sorted(folder.glob("*.img"))
        if file.stem not in ("sd", "firmware")
    }


def test_two_releases_in_turn_each_proved(lab, install, releases):
    _, file = lab()
    work = install(file)
    first = work.install(str(releases[0]))
    assert first.runs.release == "virtual-sd-2026.01"
    assert not first.left_alone
    second = work.install(str(releases[1]))
    assert second.runs.release == "virtual-sd-2026.02"
    facts = second.facts
    assert facts["uboot"] == "U-Boot 2025.01 (Jan 02 2025 - 00:00:00 +0000)"
    assert facts["kernel_version"].startswith("#2 SMP")
    assert facts["root"] == "e5a1b202-02"
    assert facts["sha256"] == hashlib.sha256(releases[1].read_bytes()).hexdigest()
    again = work.install(str(releases[1]))
    assert again.left_alone
    assert again.facts["left_alone"]


def test_an_old_boot_loader_in_front_of_a_new_image_is_found(lab, install, releases, tmp_path):
    old = open_image(str(releases[0]))
    loader = tmp_path / "u-boot.bin"
    imagelab.run("mcopy", "-n", "-i", f"{old.content}@@1M", "::u-boot.bin", loader)
    _, file = lab(boot_loader=loader)
    work = install(file)
    with pytest.raises(LabError) as failed:
        work.install(str(releases[1]))
    assert "its U-Boot is 'U-Boot 2025.01 (Jan 01 2025" in str(failed.value)
    assert "the image's is 'U-Boot 2025.01 (Jan 02 2025" in str(failed.value)


def test_a_switch_that_is_stuck_ends_it_before_anything_is_written(lab, install, releases):
    bench, file = lab(card_stuck="dut")
    work = install(file)
    with pytest.raises(LabError, match=r"host .* dut"):
        work.install(str(releases[0]))
    assert not work.book.read().writing, "nothing was begun: the card is what it was"
    assert not any(bench.folder.joinpath("disks/sd.img").read_bytes()[: 1 << 20])
    assert not bench.status().power


def test_a_card_that_stays_at_the_host_leaves_the_board_off(lab, install, releases):
    bench, file = lab(card_stuck="host")
    with pytest.raises(LabError, match=r"dut .* host"):
        install(file).install(str(releases[0]))
    assert not bench.status().power


def test_the_card_is_not_moved_under_power(lab):
    bench, _ = lab()
    bench.on()
    with pytest.raises(LabError, match=r"card .*board is on"):
        bench.card("host")
    assert "no partition" in bench.status().silent
    bench.off()
    bench.card("host")
    assert bench.status().card == "host"


def test_an_image_of_another_machine_leaves_the_power_alone(lab, install, tmp_path):
    bench, file = lab()
    bench.on()
    since = bench.status().since
    other = imagelab.build(tmp_path / "other.wic")
    with pytest.raises(UsageError, match="is for the machine am64xx-evm"):
        install(file).install(str(other))
    assert (bench.status().power, bench.status().since) == (True, since)


WRITE = """
import sys
from evmperf.commands.cli.main import main
from evmperf.lab.provision import writer
def stop(content, path):
    print("half", flush=True)
    __import__("time").sleep(60)
writer._dd = stop
main(["image", "install", *sys.argv[1:]])
"""


def test_a_write_that_is_killed_is_never_booted(lab, install, releases):
    bench, file = lab()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, file, releases[0]], stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    try:
        assert any(line == "half\n" for line in process.stdout)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    work = install(file)
    with pytest.raises(LabError, match=r"the write of virtual-sd-2026\.01\.wic\.zst .* interrupted"):
        work.bench.shell()
    assert not bench.status().power
