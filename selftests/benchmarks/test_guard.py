"""The guard before everything destructive, by a real shell on block devices of this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from evmperf.benchmarks.families.scratch import clean_up, guard, on_block_device
from selftests.support import programs
from selftests.support.deskboard import this_machine

MARK = "the guard let it pass"


def run_guard(partition, driver="none of the storage drivers", shell="sh"):
    return programs.run(*shell.split(), "-c", f"{guard(partition, driver)}; echo {MARK}")


def root_device():
    source = programs.run("findmnt", "-no", "SOURCE", "/").stdout.strip()
    return source if source.startswith("/dev/") and Path(source).is_block_device() else ""


needs_root_device = pytest.mark.skipif(not root_device(), reason="this machine's root is on no block device")


def must(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def loop(tmp_path):
    """A loop device with a file system, not mounted."""
    if os.geteuid():
        pytest.skip("loop devices need root")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    must("mkfs.ext2", "-q", "-F", str(image))
    try:
        device = must("losetup", "-f", "--show", str(image))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device available: {error.stderr.strip()}")
    yield device
    while device in mounted():
        must("umount", device)
    must("losetup", "-d", device)


def mounted():
    return [line.split()[0] for line in Path("/proc/mounts").read_text().splitlines()]


@pytest.mark.parametrize("partition", ["/dev/evmperf-is-not-there", "/etc/passwd", "/tmp"])
def test_what_is_no_device_is_refused_with_what_to_do(partition):
    done = run_guard(partition)
    assert done.returncode == 3
    assert f"{partition} does not exist: " in done.stdout
    assert "scratch partition in the board file" in done.stdout
    assert MARK not in done.stdout


@needs_root_device
def test_the_device_of_the_root_is_refused():
    done = run_guard(root_device())
    assert done.returncode == 3
    assert f"{root_device()} holds the mounted root" in done.stdout
    assert MARK not in done.stdout


@needs_root_device
def test_the_root_is_known_under_another_name_too(tmp_path):
    link = tmp_path / "scratch"
    link.symlink_to(root_device())
    assert run_guard(link).returncode == 3


@needs_root_device
def test_the_whole_disk_under_the_root_is_refused():
    name = Path(root_device()).resolve().name
    disk = Path("/sys/class/block", name).resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    assert run_guard(f"/dev/{disk.name}").returncode == 3


def test_a_device_that_is_not_mounted_passes(loop):
    done = run_guard(loop)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, MARK, "")


@pytest.mark.parametrize("name", ["a", "SD CARD"])
def test_what_evmperf_did_not_mount_stays_mounted(loop, tmp_path, name):
    (tmp_path / name).mkdir()
    must("mount", loop, str(tmp_path / name))
    done = run_guard(loop)
    assert done.returncode == 3
    assert f"{loop} is mounted at {tmp_path}/{name[:2]}" in done.stdout
    assert "unmount it, or name another" in done.stdout
    assert loop in mounted()


def test_a_mount_in_another_name_space_is_seen(loop, tmp_path):
    command = f"mount {loop} {tmp_path} && echo mounted && read line"
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"mounted\n"
        assert loop not in mounted()
        done = run_guard(loop)
        other.communicate(b"\n")
    assert (done.returncode, MARK in done.stdout) == (3, False)


def test_swap_space_in_use_is_refused(loop):
    must("mkswap", loop)
    must("swapon", loop)
    try:
        assert "is swap space in use" in run_guard(loop).stdout
    finally:
        must("swapoff", loop)


def test_what_a_killed_session_of_ours_left_is_unmounted_and_the_end_leaves_no_file_system(loop):
    with this_machine():
        must("sh", "-c", on_block_device("ext2", "").fresh(loop))
        assert loop in mounted()
        assert run_guard(loop).returncode == 0
        assert loop not in mounted()
        must("sh", "-c", on_block_device("ext2", "").fresh(loop))
        assert must("blkid", "-p", "-o", "value", "-s", "TYPE", loop) == "ext2"
        must("sh", "-c", clean_up().command)
    assert loop not in mounted()
    assert subprocess.run(["blkid", "-p", loop], check=False).returncode == 2  # nothing is known of it


GPT, MBR = "label: gpt\n", "label: dos\n"
LOGICAL = (
    f"{MBR}start=2048,size=20480\nstart=22528,size=131072,type=5\nstart=24576,size=20480\n"
    "start=47104,size=20480\nstart=69632,size=20480\n"
)


@pytest.fixture
def disk(tmp_path):
    """Makes a disk, on which the kernel uses the partitions of its first table, and the table is another."""
    if os.geteuid():
        pytest.skip("loop devices need root")
    devices = []

    def make(table, later=""):
        image = tmp_path / "disk"
        image.touch()
        os.truncate(image, 100 << 20)
        for text in filter(None, (table, later)):
            if text is later:
                must("partx", "--add", devices[0])
            subprocess.run(["sfdisk", "-q", "--no-reread", "-f", image], input=text, text=True, check=True)
            if not devices:
                devices.append(must("losetup", "-fP", "--show", str(image)))
        if not later:
            must("partx", "--add", devices[0])
        return devices[0]

    yield make
    for device in devices:
        subprocess.run(["partx", "--delete", device], check=False)
        must("losetup", "-d", device)


TABLES = [f"{GPT}size=8M\nsize=16M\nsize=8M\n", f"{MBR}size=8M\nsize=16M\nsize=8M\n", LOGICAL]


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
@pytest.mark.parametrize("table", TABLES)
def test_a_partition_that_table_and_kernel_agree_on_passes(disk, table, shell):
    device = disk(table)
    for part in sorted(Path("/sys/block", device.rpartition("/")[2]).glob("loop*p*")):
        done = run_guard(f"/dev/{part.name}", shell=shell)
        if (part / "size").read_text() != "2\n":  # an extended partition: the kernel shows its head only
            assert (done.returncode, done.stdout.strip(), done.stderr) == (0, MARK, "")
        else:
            assert done.returncode == 3


CHANGED = {
    "it is gone": (TABLES[0], f"{GPT}size=8M\n", 2),
    "it starts elsewhere": (TABLES[0], f"{GPT}size=9M\nsize=15M\n", 2),
    "it is shorter": (TABLES[1], f"{MBR}size=8M\nsize=15M\n", 2),
    "another has its number": (TABLES[1], f"{MBR}size=8M\nstart=51200,size=8M\n", 2),
    "a logical one is gone": (LOGICAL, LOGICAL.rpartition("start=")[0], 7),
    "a logical one moved": (LOGICAL, LOGICAL.replace("start=69632,size=20480", "start=71680,size=18432"), 7),
    "the kind of table is another": (TABLES[0], TABLES[1].replace("16M", "12M"), 3),
    "there is no table": (TABLES[0], "label: sun\n", 2),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_partition_that_table_and_kernel_disagree_on_is_refused(disk, change):
    table, later, number = CHANGED[change]
    done = run_guard(f"{disk(table, later)}p{number}")
    assert done.returncode == 3
    assert "than the kernel uses" in done.stdout


@pytest.mark.parametrize(
    ("driver", "what"),
    [
        ("emmc", "an eMMC"),
        ("mmcsd", "an SD card"),
        ("pcie", "an NVMe disk"),
        ("ufs", "a UFS disk"),
        ("usb", "a USB disk"),
    ],
)
def test_a_disk_of_another_kind_is_refused(loop, driver, what):
    done = run_guard(loop, driver)
    assert done.returncode == 3
    name = loop.rpartition("/")[2]
    assert f"{loop} ({name}) is not on {what}: name another scratch partition" in done.stdout
    assert MARK not in done.stdout
