"""Releases put on a virtual EVM that boots from its card: written, booted, identified, and every
way in which that goes wrong.
"""

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


@pytest.fixture
def lab(state, request):
    """A function that starts a virtual lab; gives its bench and an installation there. What is on the other
    disks of the board must be the same in the end.
    """

    def start(**options):
        bench = LabClient("card")
        bench.start(VARIANT, serial_port=0, power_port=0, **options)
        request.addfinalizer(bench.stop)
        before = virtualbench.disks(bench)

        def unchanged():
            bench.off()
            assert virtualbench.disks(bench) | {"sd": ""} == before | {"sd": ""}

        request.addfinalizer(unchanged)
        file = virtualbench.board_file(bench, VARIANT, bench.folder)
        data = yaml.safe_load(file.read_text())
        data["targets"]["main"]["drivers"]["K3BootStrategy"].update(kernel_timeout=180, boot_timeout=240)
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        environment = Environment(str(file))
        request.addfinalizer(environment.cleanup)
        target, board = environment.get_target("main"), benchmarks.board(file)
        return bench, Installation(target, board, LabgridBench(target, board))

    return start


def test_two_releases_in_turn_each_proved(lab, releases):
    _, work = lab()
    first, second, again = (work.install(str(releases[number])) for number in (0, 1, 1))
    assert [one.left_alone for one in (first, second, again)] == [False, False, True]
    assert [one.runs.release for one in (first, second)] == ["virtual-sd-2026.01", "virtual-sd-2026.02"]
    facts = second.facts
    assert facts["uboot"] == "U-Boot 2025.01 (Jan 02 2025 - 00:00:00 +0000)"
    assert facts["kernel_version"].startswith("#2 SMP")
    assert facts["root"] == "e5a1b202-02"
    assert facts["sha256"] == second.image.sha256


def test_an_old_boot_loader_in_front_of_a_new_image_is_found(lab, releases, tmp_path):
    old = open_image(str(releases[0]))
    loader = tmp_path / "u-boot.bin"
    imagelab.run("mcopy", "-n", "-i", f"{old.content}@@1M", "::u-boot.bin", loader)
    _, work = lab(boot_loader=loader)
    with pytest.raises(LabError) as failed:
        work.install(str(releases[1]))
    assert "its U-Boot is 'U-Boot 2025.01 (Jan 01 2025" in str(failed.value)
    assert "the image's is 'U-Boot 2025.01 (Jan 02 2025" in str(failed.value)


@pytest.mark.parametrize(("at", "said"), [("dut", "host .* dut"), ("host", "dut .* host")])
def test_a_card_that_stays_at_the_board_is_not_written_and_one_at_the_host_not_booted(
    lab, releases, at, said
):
    bench, work = lab(card_stuck=at)
    with pytest.raises(LabError, match=said):
        work.install(str(releases[0]))
    if at == "dut":
        assert not work.book.read().writing, "nothing was begun: the card is what it was"
        assert not any(bench.folder.joinpath("disks/sd.img").read_bytes()[: 1 << 20])
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


def test_an_image_of_another_machine_leaves_the_power_alone(lab, plain):
    bench, work = lab()
    bench.on()
    since = bench.status().since
    with pytest.raises(UsageError, match="is for the machine am64xx-evm"):
        work.install(str(plain))
    assert (bench.status().power, bench.status().since) == (True, since)


WRITE = """
import sys, time
from evmperf.commands.cli.main import main
from evmperf.lab.provision import writer
def stop(content, path):
    print("half", flush=True)
    time.sleep(60)
writer._dd = stop
main(["image", "install", *sys.argv[1:]])
"""


def test_a_write_that_is_killed_is_never_booted(lab, releases):
    bench, work = lab()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, work.board.file, releases[0]],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    with process:
        assert any(line == "half\n" for line in process.stdout)
        process.send_signal(signal.SIGKILL)
    with pytest.raises(LabError, match=r"the write of virtual-sd-2026\.01\.wic\.zst .* interrupted"):
        work.bench.shell()
    assert not bench.status().power
