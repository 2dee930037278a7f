"""evmperf's own program for boards without any: its binaries are of its source, its figures are read."""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Plan
from evmperf.benchmarks.tools import gauge
from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.lab.desk import boardfile, identity
from evmperf.lab.desk.identity import SshAddress
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Result, Sample, Status
from evmperf.publish.report.summary import headlines

FOLDER = Path(gauge.__file__).parent
MACHINE = {  # of an ELF head: its number at byte 18
    "aarch64": 183,
    "armv7l": 40,
    "riscv64": 243,
    "x86_64": 62,
}


@pytest.mark.parametrize("machine", gauge.MACHINES)
def test_a_program_is_of_the_source_beside_it_static_and_small(machine):
    program = (FOLDER / f"{machine}.bin").read_bytes()
    source = hashlib.sha256((FOLDER / "gauge.c").read_bytes()).hexdigest()[:16]
    assert f"evmperf-gauge source {source}".encode() in program, "gauge.c changed: `make gauge`"
    assert program[:4] == b"\x7fELF"
    assert program[18] == MACHINE[machine]
    assert b"ld-" not in program
    assert len(program) < 100_000


@pytest.mark.parametrize("machine", gauge.MACHINES)
def test_make_gauge_gives_the_same_program(machine, tmp_path):
    if not (shutil.which("clang") and shutil.which("ld.lld")):
        pytest.skip("no clang and lld here: apt-get install clang lld")
    said = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout
    if "14.0.6" not in said:
        pytest.skip("the programs were compiled by clang 14.0.6")
    shutil.copytree(FOLDER, tmp_path / "gauge")
    make = ["make", "-C", boards.ENV_DIR.parent, "gauge", f"GAUGE={tmp_path}/gauge"]
    subprocess.run(make, check=True, capture_output=True)
    name = f"{machine}.bin"
    assert (tmp_path / "gauge" / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.fixture
def here(tmp_path):
    """A board file of this machine with a file as its disk, which needs no device."""
    machine = gauge.machine(platform.machine())
    if not machine:
        pytest.skip(f"no program for {platform.machine()}")
    disk = tmp_path / "disk"
    disk.write_bytes(os.urandom(8 << 20))
    found = identity.answer(f"model: This Machine\nmachine: {machine}\nuser: 0\n")
    file = boardfile.write(tmp_path, found, SshAddress("root", "localhost"), {}, power="none")
    data = yamlfile.read(file)
    return boards.load(file), data, disk


def outputs(command, folder):
    """The files that a step's command leaves."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    environment = {**os.environ, "OUT": str(out), "F": str(folder)}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {file.name: file.read_text() for file in out.iterdir()}


@pytest.mark.parametrize("name", ["processor", "memory_bandwidth", "memory_latency"])
def test_each_table_is_read_from_one_run_of_the_real_program(name, here, tmp_path):
    board, _, _ = here
    benchmark = catalogue.benchmark(name)
    cases = benchmark.cases("quick")
    steps = [benchmark.planned(board, case, Plan())[0] for case in cases]
    assert len({(step.command, step.shared) for step in steps}) == 1
    left = outputs(steps[0].command, tmp_path)
    assert not list(tmp_path.glob("evmperf-gauge"))
    for step in steps:
        readings = {reading.metric: reading.value for reading in step.parse(left)}
        assert set(readings) == {metric.name for metric in benchmark.metrics}
        for metric in benchmark.metrics:
            assert metric.low <= readings[metric.name] <= metric.high
    with pytest.raises(RefusedOutput):
        steps[0].parse({gauge.TEXT_FILE: left[gauge.TEXT_FILE].replace("\nend\n", "\n")})


def test_a_disk_is_read_past_the_cache_and_left_as_it_was(here, tmp_path):
    _, _, disk = here
    before = hashlib.sha256(disk.read_bytes()).digest()
    text = outputs(gauge.command(gauge.machine(platform.machine()), f"disk {disk} 1"), tmp_path)["gauge.txt"]
    assert gauge.figure(text, gauge.NAME, "sequential", "MB/s") > 1
    assert gauge.figure(text, gauge.NAME, "random", "1/s") > 10
    assert gauge.figure(text, gauge.NAME, "size", "MB") == pytest.approx(8.389, abs=0.001)
    assert hashlib.sha256(disk.read_bytes()).digest() == before


def test_a_board_whose_tmp_runs_nothing_is_served_from_another_folder(tmp_path):
    run = gauge.command(gauge.machine(platform.machine()), "load 1").replace("/dev/shm", str(tmp_path / "b"))
    (tmp_path / "b").mkdir()
    # As with noexec: what is written to the first folders cannot be run.
    run = run.replace(
        "chmod 700 $f", f"{{ case $f in {tmp_path}/b/*) chmod 700 $f;; *) chmod 600 $f;; esac; }}"
    )
    text = outputs(run, tmp_path)["gauge.txt"]
    assert gauge.figure(text, gauge.NAME, "clock_last", "MHz") > 10


DISKS = """\
disk: mmcblk0 MMC /sys/devices/platform/bus@f0000/fa10000.mmc/mmc_host/mmc0/mmc0:0001/block/mmcblk0
disk: mmcblk1 SD /sys/devices/platform/bus@f0000/fa00000.mmc/mmc_host/mmc1/mmc1:1234/block/mmcblk1
disk: nvme0n1 /sys/devices/platform/f102000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/nvme/nvme0/nvme0n1
disk: sda 0 /sys/devices/platform/f910000.usb/xhci-hcd.1.auto/usb1/1-1/1-1:1.0/host0/target0:0:0/block/sda
disk: sdb 0 /sys/devices/platform/f910000.usb/xhci-hcd.1.auto/usb1/1-2/1-2:1.0/host1/target1:0:0/block/sdb
disk: sdc 0 /sys/devices/platform/4e80000.ufs-wrapper/4e84000.ufs/host2/target2:0:0/2:0:0:0/block/sdc
disk: vda /sys/devices/platform/a003e00.virtio_mmio/virtio0/block/vda
disk: $(reboot) /sys/x
disk: ../sda 0 /sys/x
"""


def test_disks_are_named_by_their_kind_and_no_word_of_a_board_is_a_path(tmp_path):
    found = identity.answer(DISKS + "machine: aarch64\nhost: strange\n")
    assert found.model == "strange"
    assert found.disks == (
        "emmc=/dev/mmcblk0",
        "mmcsd=/dev/mmcblk1",
        "pcie=/dev/nvme0n1",
        "usb=/dev/sda",
        "usb 2=/dev/sdb",
        "ufs=/dev/sdc",
        "disk=/dev/vda",
    )
    board = boards.load(boardfile.write(tmp_path, found, SshAddress("root", "h"), {}, power="none"))
    benchmark = catalogue.benchmark("disk_reads")
    there = [case.label for case in benchmark.cases("quick") if not benchmark.unsupported(board, case)]
    assert there == ["emmc", "mmcsd", "ufs", "pcie", "usb", "usb 2", "disk"]


def test_what_spoils_figures_is_marked():
    said = "cpus: 4\nload: 3.1\ngovernor: powersave\ntemperature: 43200\nmemory: 999999 819200\n"
    busy = identity.answer(said)
    assert list(busy.state) == [
        ("load 3.1 of 4 CPUs", True),
        ("governor powersave", True),
        ("43 °C", False),
        ("800 MiB of memory free", False),
    ]
    assert identity.answer("load: 0.1\n").state == (("load 0.1 of ? CPUs", False),)
    assert identity.answer("load: $(reboot)\ngovernor: \x1b[2J\nmemory: 1 2 3\n").state == ()


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("Startup finished in 1.203s (kernel) + 3.1s (initrd) + 9.412s (userspace) = 13.715s\n", 3),
        ("3.412345] Run /sbin/init as init process\n", 1),
    ],
)
def test_the_last_boot_is_what_systemd_or_the_kernel_tells(text, metrics):
    (step,) = catalogue.benchmark("last_boot").planned(
        None, catalogue.benchmark("last_boot").cases("quick")[0], Plan()
    )
    found = {reading.metric: reading.value for reading in step.parse({"started.txt": text})}
    assert len(found) == metrics
    assert found["kernel"] == pytest.approx(4.303 if metrics > 1 else 3.412345)
    samples = tuple(Sample(name, value, "s", 0, 1) for name, value in found.items())
    result = Result("last_boot", 1, "desk", "boot", {}, "quick", Status.MEASURED, samples)
    assert [one.area for one in headlines([result], None)] == ["Boot" if metrics > 1 else "Kernel alone"]
    with pytest.raises(RefusedOutput, match="tells the duration"):
        step.parse({"started.txt": ""})
