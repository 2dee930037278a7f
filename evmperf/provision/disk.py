"""What is on the disk of an image: its partition table, and files out of its file systems.

Programs of Debian read it, without mounting and without root: sfdisk, mtools, debugfs of e2fsprogs.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from evmperf.model.errors import LabError, UsageError

_TIMEOUT_S = 120.0
_LINKS = 8
_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}


@dataclass(frozen=True)
class Partition:
    """One partition: `start` and `size` in bytes; `uuid` is its PARTUUID."""

    start: int
    size: int
    uuid: str


@dataclass(frozen=True)
class PartitionTable:
    """A partition table: `label` is dos or gpt, `id` the disk's: 8 hex digits, or a UUID."""

    label: str
    id: str
    partitions: tuple[Partition, ...]

    @property
    def end(self) -> int:
        """The first byte behind the last partition."""
        return max((p.start + p.size for p in self.partitions), default=0)


def read(file: Path) -> PartitionTable:
    """The table of a disk or an image of one; raises UsageError for a file that has none."""
    done = _run("sfdisk", "fdisk", "--json", str(file))
    try:
        return parse(done.stdout.decode("utf-8", "replace"))
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["sfdisk finds none"])[-1]
        raise UsageError(
            f"{file} has no partition table ({said}): it is not an image of a whole disk"
        ) from None


def parse(text: str) -> PartitionTable:
    """Read `sfdisk --json`; raises ValueError, KeyError or TypeError for anything else."""
    data: dict[str, Any] = json.loads(text)["partitiontable"]
    label, sector = str(data["label"]), int(data.get("sectorsize", 512))
    disk = str(data["id"]).removeprefix("0x").lower()
    found = []
    for entry in data.get("partitions", []):
        # "FILE1", "/dev/mmcblk1p2": the number is what the name ends with.
        number = int(entry["node"][len(entry["node"].rstrip("0123456789")) :])
        uuid = str(entry["uuid"]).lower() if "uuid" in entry else f"{disk}-{number:02x}"
        found.append(Partition(int(entry["start"]) * sector, int(entry["size"]) * sector, uuid))
    return PartitionTable(label, disk, tuple(found))


class Fat:
    """A FAT file system, read by mtools. What does not exist is None or empty."""

    def __init__(self, image: Path, partition: Partition) -> None:
        self._where = f"{image}@@{partition.start}"

    def read(self, path: str) -> bytes | None:
        """A file's content."""
        done = _run("mcopy", "mtools", "-n", "-i", self._where, f"::{path}", "-")
        return done.stdout if done.returncode == 0 else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""
        done = _run("mdir", "mtools", "-b", "-i", self._where, f"::{folder}")
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return [PurePosixPath(line.strip().rstrip("/")).name for line in lines if "::" in line]


class Ext:
    """An ext2, ext3 or ext4 file system, read by debugfs. What does not exist is None or empty."""

    def __init__(self, image: Path, partition: Partition) -> None:
        if any(character in str(image) for character in "?\n"):
            raise UsageError(f"{image} has a question mark in its name: rename it")
        self._where = f"{image}?offset={partition.start}"

    def read(self, path: str) -> bytes | None:
        """A file's content; symbolic links are followed."""
        path, about = self._followed(path)
        return self._ask("cat", path) if "Type: regular" in about else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""
        # -p: /INODE/MODE/UID/GID/NAME/SIZE/
        lines = self._ask("ls -p", self._followed(folder)[0]).decode("utf-8", "replace").splitlines()
        names = [line.split("/")[5] for line in lines if line.count("/") >= 6]
        return [name for name in names if name not in (".", "..", "")]

    def _followed(self, path: str) -> tuple[str, str]:
        """Where symbolic links lead, and what debugfs says of that."""
        for _ in range(_LINKS):
            about = self._ask("stat", path).decode("utf-8", "replace")
            if "Type: symlink" not in about:
                return path, about
            fast = re.search(r'Fast link dest: "(.*)"', about)
            # A long link has its target in a block of its own.
            target = fast[1] if fast else self._ask("cat", path).decode("utf-8", "replace")
            path = str(PurePosixPath(path).parent / target)
        return path, ""

    def _ask(self, request: str, path: str) -> bytes:
        quoted = path.replace('"', '""')
        # What debugfs says of itself, and its errors, go to stderr.
        return _run("debugfs", "e2fsprogs", "-R", f'{request} "{quoted}"', self._where).stdout


def file_system(image: Path, partition: Partition) -> Fat | Ext | None:
    """The file system of a partition, by its superblock; None for a kind that is not read."""
    with image.open("rb") as file:
        file.seek(partition.start)
        head = file.read(2048)
    # FAT: the signature of a boot sector, and its type in one of two places.
    if head[510:512] == b"\x55\xaa" and (head[54:57] == b"FAT" or head[82:85] == b"FAT"):
        return Fat(image, partition)
    return Ext(image, partition) if head[1080:1082] == b"\x53\xef" else None


def _run(name: str, package: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the host, also one in sbin; raises LabError that names its package."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not program:
        raise LabError(f"this host lacks {name}, which reads images: install the package {package}")
    return subprocess.run(
        [program, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
        env=_ENVIRONMENT,
    )
