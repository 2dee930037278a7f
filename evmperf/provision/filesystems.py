"""Files out of the file systems inside an image, without mounting and without being root."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Protocol

from evmperf.model.errors import UsageError
from evmperf.provision.partitions import Partition, program

_TIMEOUT_S = 120.0
_LINKS = 8


class ImageFileSystem(Protocol):
    """Reading one file system; what is not there is None or empty."""

    def read(self, path: str) -> bytes | None:
        """A file's content."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""


def find(image: Path, partition: Partition) -> ImageFileSystem | None:
    """The file system of a partition, by its superblock: FAT or ext2 to ext4; None for others."""
    with image.open("rb") as file:
        file.seek(partition.start)
        head = file.read(2048)
    # FAT: the signature of a boot sector, and its type in one of two places.
    if head[510:512] == b"\x55\xaa" and (head[54:57] == b"FAT" or head[82:85] == b"FAT"):
        return Fat(image, partition)
    if head[1080:1082] == b"\x53\xef":
        return Ext(image, partition)
    return None


class Fat:
    """FAT by mtools."""

    def __init__(self, image: Path, partition: Partition) -> None:
        self._where = f"{image}@@{partition.start}"

    def read(self, path: str) -> bytes | None:
        """A file's content."""
        done = _run([program("mcopy", "mtools"), "-n", "-i", self._where, f"::{path}", "-"])
        return done.stdout if done.returncode == 0 else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""
        done = _run([program("mdir", "mtools"), "-b", "-i", self._where, f"::{folder}"])
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return [PurePosixPath(line.strip().rstrip("/")).name for line in lines if "::" in line]


class Ext:
    """ext2, ext3 and ext4 by debugfs of e2fsprogs."""

    def __init__(self, image: Path, partition: Partition) -> None:
        if any(character in str(image) for character in "?\n"):
            raise UsageError(f"{image} has a question mark in its name: rename it")
        self._where = f"{image}?offset={partition.start}"

    def read(self, path: str) -> bytes | None:
        """A file's content; symbolic links are followed."""
        for _ in range(_LINKS):
            about = self._ask(f"stat {_quoted(path)}").decode("utf-8", "replace")
            if "Type: regular" in about:
                return self._ask(f"cat {_quoted(path)}")
            target = self._link(path, about)
            if target is None:
                return None
            path = str(PurePosixPath(path).parent / target)
        return None

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""
        for _ in range(_LINKS):
            about = self._ask(f"stat {_quoted(folder)}").decode("utf-8", "replace")
            target = self._link(folder, about)
            if target is None:
                break
            folder = str(PurePosixPath(folder).parent / target)
        # -p: /INODE/MODE/UID/GID/NAME/SIZE/
        lines = self._ask(f"ls -p {_quoted(folder)}").decode("utf-8", "replace").splitlines()
        names = [line.split("/")[5] for line in lines if line.count("/") >= 6]
        return [name for name in names if name not in (".", "..", "")]

    def _link(self, path: str, about: str) -> str | None:
        """Where a symbolic link leads; a long one has its target in a block of its own."""
        if "Type: symlink" not in about:
            return None
        fast = re.search(r'Fast link dest: "(.*)"', about)
        return fast[1] if fast else self._ask(f"cat {_quoted(path)}").decode("utf-8", "replace")

    def _ask(self, request: str) -> bytes:
        # What debugfs says of itself, and its errors, go to stderr.
        return _run([program("debugfs", "e2fsprogs"), "-R", request, self._where]).stdout


def _quoted(path: str) -> str:
    return '"' + path.replace('"', '""') + '"'


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"},
    )
