"""Block devices and small file systems of this machine, for tests as root."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

LOSETUP = "/usr/sbin/losetup"


@contextlib.contextmanager
def loop(file, *options):
    """A block device with this file behind it."""
    command = [LOSETUP, "--find", "--show", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop devices here: {done.stderr.strip()}")
    device = Path(done.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run([LOSETUP, "--detach", device], check=True)


@contextlib.contextmanager
def small(folder, size):
    """A folder on a file system in memory of that size."""
    if os.geteuid():
        pytest.skip("mounting a small file system needs root")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
