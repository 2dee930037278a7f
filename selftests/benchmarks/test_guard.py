"""The guard before everything destructive, by a real shell on block devices of this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from evmperf.benchmarks.families.scratch import guard

MARK = "the guard let it pass"


def run_guard(partition, driver="none of the storage drivers"):
    return subprocess.run(
        ["sh", "-c", f"{guard(partition, driver)}; echo {MARK}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def root_device():
    source = subprocess.run(
        ["findmnt", "-no", "SOURCE", "/"], capture_output=True, text=True, check=False
    ).stdout.strip()
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


def test_a_device_mounted_twice_is_unmounted_everywhere_and_passes(loop, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        must("mount", loop, str(tmp_path / name))
    assert mounted().count(loop) == 2
    done = run_guard(loop)
    assert (done.returncode, done.stdout.strip()) == (0, MARK)
    assert loop not in mounted()


def test_a_mounted_device_in_use_is_refused(loop, tmp_path):
    (tmp_path / "a").mkdir()
    must("mount", loop, str(tmp_path / "a"))
    with (tmp_path / "a" / "open").open("w"):
        done = run_guard(loop)
    assert done.returncode == 3
    assert "busy" in done.stderr
    assert MARK not in done.stdout


def test_a_device_mounted_where_the_name_has_a_blank_is_unmounted(loop, tmp_path):
    place = tmp_path / "SD CARD"
    place.mkdir()
    must("mount", loop, str(place))
    assert run_guard(loop).returncode == 0
    assert loop not in mounted()


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
