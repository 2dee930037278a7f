"""The guard before everything destructive, by a real shell on block devices of this machine."""

import contextlib
import itertools
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from evmperf.benchmarks.families.scratch import clean_up, file_system, guard
from selftests.support import devices, programs
from selftests.support.deskboard import this_machine
from selftests.support.placelab import until

MARK = "the guard let it pass"


def run_guard(partition, driver="none of the storage drivers", shell="sh", *, whole_disk=True):
    text = guard(str(partition), driver, whole_disk=whole_disk)
    return programs.run(*shell.split(), "-c", f"{text}; echo {MARK}")


def refused(said, partition, *given, **more):
    """Check that the guard refuses, and says so."""
    done = run_guard(partition, *given, **more)
    assert (done.returncode, said in done.stdout, MARK in done.stdout) == (3, True, False), done


def passed(partition, *given, **more):
    """Check that the guard lets it pass, in silence."""
    done = run_guard(partition, *given, **more)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, MARK, ""), done


def root_device():
    source = programs.run("findmnt", "-no", "SOURCE", "/").stdout.strip()
    return source if source.startswith("/dev/") and Path(source).is_block_device() else ""


SHELLS = ("dash", "bash", "busybox sh")


def must(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def loop(tmp_path):
    """A loop device with a file system, not mounted."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    must("mkfs.ext2", "-q", "-F", str(image))
    with devices.loop(image) as found:
        device = str(found)
        yield device
        while device in mounted():
            must("umount", device)


def mounted():
    return [line.split()[0] for line in Path("/proc/mounts").read_text().splitlines()]


@pytest.mark.parametrize("partition", ["/dev/evmperf-is-not-there", "/etc/passwd", "/tmp"])
def test_what_is_no_device_is_refused_with_what_to_do(partition):
    refused(f"{partition} does not exist: ", partition)
    refused("scratch partition in the board file", partition)


@pytest.mark.skipif(not root_device(), reason="this machine's root is on no block device")
def test_the_device_of_the_root_is_refused_under_another_name_and_with_its_disk(tmp_path):
    root, link = root_device(), tmp_path / "scratch"
    link.symlink_to(root)
    disk = Path("/sys/class/block", Path(root).resolve().name).resolve()
    disk = disk.parent if (disk / "partition").exists() else disk
    refused(f"{root} holds the mounted root", root)
    for other in (link, f"/dev/{disk.name}"):
        refused("", other)


@pytest.mark.parametrize("name", ["a", "SD CARD"])
def test_what_evmperf_did_not_mount_stays_mounted(loop, tmp_path, name):
    passed(loop)
    (tmp_path / name).mkdir()
    must("mount", loop, str(tmp_path / name))
    refused(f"{loop} is mounted at {tmp_path}/{name[:2]}", loop)
    refused("unmount it, or name another", loop)
    assert loop in mounted()


def test_a_mount_in_another_name_space_is_seen(loop, tmp_path):
    command = f"mount {loop} {tmp_path} && echo mounted && read line"
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"mounted\n"
        assert loop not in mounted()
        refused("", loop)
        other.communicate(b"\n")


def test_a_name_with_a_command_in_it_is_a_name(tmp_path):
    refused(f"/dev/none; touch {tmp_path}/it's does not exist: ", f"/dev/none; touch {tmp_path}/it's")
    assert list(tmp_path.iterdir()) == []


def test_a_whole_disk_needs_its_word_and_has_no_partitions(loop, disk):
    parted = disk(TABLES[0])
    for shell in SHELLS:
        refused(f"{loop} is a whole disk: set whole_disk", loop, shell=shell, whole_disk=False)
        passed(loop, shell=shell)
        for whole_disk in (True, False):
            refused("is a whole disk with partitions", parted, shell=shell, whole_disk=whole_disk)


def test_a_node_of_another_name_is_the_device_of_its_number(loop, tmp_path):
    number = Path(loop).stat().st_rdev
    node, other = tmp_path / "scratch", tmp_path / "none"
    os.mknod(node, 0o60600, number)
    os.mknod(other, 0o60600, os.makedev(os.major(number), 1 << 18))
    for shell in SHELLS:
        passed(node, shell=shell)
        refused("that the kernel does not have", other, shell=shell)
    (tmp_path / "mnt").mkdir()
    must("mount", loop, str(tmp_path / "mnt"))
    for shell in SHELLS:
        refused(f"{node} is mounted at {tmp_path}/mnt", node, shell=shell)


@pytest.mark.parametrize("over", ["p2", ""])
def test_a_loop_device_over_the_partition_or_its_disk_is_seen(disk, over):
    device = disk(TABLES[0])
    with devices.loop(f"{device}{over}") as upper:
        refused(f"{device}p2 is in use by /sys/block/{upper.name}: detach it", f"{device}p2")
    passed(f"{device}p2")


@pytest.mark.skipif(not shutil.which("mkfs.btrfs"), reason="no mkfs.btrfs: apt-get install btrfs-progs")
def test_the_second_device_of_a_btrfs_is_seen(disk, tmp_path):
    device = disk(f"{GPT}size=40M\nsize=40M\n")
    must("mkfs.btrfs", "-q", "-f", "-M", "-d", "single", "-m", "single", f"{device}p1", f"{device}p2")
    must("mount", f"{device}p1", str(tmp_path))
    try:
        refused("is in use by btrfs", f"{device}p2")
    finally:
        must("umount", str(tmp_path))


@pytest.mark.parametrize(
    ("asked", "shell"), [("python3", "dash"), ("mke2fs", "busybox sh"), ("wipefs", "dash")]
)
def test_a_journal_of_another_file_system_is_seen_by_what_is_on_the_board(loop, tmp_path, asked, shell):
    """Nothing in /proc or /sys names it: the kernel alone knows who has it."""
    must("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "1024", loop)
    file = tmp_path / "other"
    file.touch()
    os.truncate(file, 8 << 20)
    must("mke2fs", "-q", "-F", "-t", "ext4", "-b", "1024", "-J", f"device={loop}", str(file))
    (tmp_path / "mnt").mkdir()
    there = tmp_path / "bin"
    there.mkdir()
    for name in {asked, "mountpoint", "readlink", "cat", "ls", "cut", "grep", "head", "od", "umount", "stat"}:
        (there / name).symlink_to(shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"))
    with devices.loop(file) as upper:
        must("mount", upper, str(tmp_path / "mnt"))
        words = [shutil.which(shell.split()[0]), *shell.split()[1:], "-c"]
        text = f"PATH={there}; {guard(loop, '', whole_disk=True)}; echo {MARK}"
        done = programs.run(*words, text)
        must("umount", str(tmp_path / "mnt"))
        assert (done.returncode, "which gives it to nobody else" in done.stdout) == (3, True), done
        # A mount namespace of another test may hold what we unmounted for a moment.
        until(lambda: programs.run(*words, text).stdout.strip() == MARK, 30)


def test_swap_space_in_use_is_refused(loop):
    must("mkswap", loop)
    must("swapon", loop)
    try:
        refused("is swap space in use", loop)
    finally:
        must("swapoff", loop)


def test_what_a_killed_session_of_ours_left_is_unmounted_and_the_end_leaves_no_file_system(loop):
    board = SimpleNamespace(text=lambda *_: loop, sections={"": {"whole_disk": True}})
    fresh = file_system("ext2", board, "").fresh
    with this_machine():
        must("sh", "-c", fresh)
        assert loop in mounted()
        assert run_guard(loop).returncode == 0
        assert loop not in mounted()
        must("sh", "-c", fresh)
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
    with contextlib.ExitStack() as stack:

        def make(table, later=""):
            image = tmp_path / "disk"
            image.touch()
            os.truncate(image, 100 << 20)
            written(table, image)
            device = str(stack.enter_context(devices.loop(image, "--partscan")))
            stack.callback(subprocess.run, ["partx", "--delete", device], check=False)
            must("partx", "--add", device)
            if later:
                written(later, image)
            return device

        yield make


def written(table, image):
    subprocess.run(["sfdisk", "-q", "--no-reread", "-f", image], input=table, text=True, check=True)


TABLES = [f"{GPT}size=8M\nsize=16M\nsize=8M\n", f"{MBR}size=8M\nsize=16M\nsize=8M\n", LOGICAL]


@pytest.mark.parametrize("table", TABLES)
def test_a_partition_that_table_and_kernel_agree_on_passes(disk, table):
    parts = sorted(Path("/sys/block", disk(table).rpartition("/")[2]).glob("loop*p*"))
    for part, shell in zip(parts, itertools.cycle(SHELLS), strict=False):
        if (part / "size").read_text() != "2\n":  # an extended partition: the kernel shows its head only
            passed(f"/dev/{part.name}", shell=shell)
        else:
            refused("", f"/dev/{part.name}", shell=shell)


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
    refused("than the kernel uses", f"{disk(table, later)}p{number}")


def test_a_disk_of_another_kind_is_refused(loop):
    kinds = {"emmc": "an eMMC", "mmcsd": "an SD card", "pcie": "an NVMe disk", "ufs": "a UFS disk"}
    for driver, what in (kinds | {"usb": "a USB disk"}).items():
        said = f"{loop} ({loop.rpartition('/')[2]}) is not on {what}: name another scratch partition"
        refused(said, loop, driver)
