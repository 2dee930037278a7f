"""What an image is, read without booting or mounting it: its partition table, and what its kernels and boot
loaders say of themselves. A board that runs the image shows the same facts on its console to compare with.

Programs of Debian read it, without root: sfdisk, mtools, debugfs of e2fsprogs.
"""

import itertools
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from evmperf.lab.provision import content as contents
from evmperf.measure import provenance
from evmperf.model.errors import UsageError

_TIMEOUT_S = 120.0
_LINKS = 8
_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}
_LOADERS = ("u-boot.img", "u-boot.bin", "tispl.bin")
_KERNELS = ("Image", "Image.gz", "fitImage", "vmlinuz", "zImage")
_SILICON = re.compile(r"tiboot3-.*?(?:-|_)(gp|hs-fs|hs)(?:-|_).*\.bin")
_SILICON_NAMES = {"gp": "gp", "hs-fs": "hs-fs", "hs": "hs-se"}
_PACKED = re.compile(rb"\x1f\x8b\x08|\xfd7zXZ\0|\x28\xb5\x2f\xfd|BZh[1-9]1AY")
_MOST_PACKED = 64
_KERNEL_LIMIT = 1 << 28

_BANNER = re.compile(rb"U-Boot (?:SPL )?20\d\d\.\d\d[^\0\n\r(]{0,80}\([^)\0\n]{10,60}\)")
_LINUX = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d+ [^\0\n]+)")


class Partition(NamedTuple):
    """One partition: `start` and `size` in bytes; `uuid` is its PARTUUID."""

    start: int
    size: int
    uuid: str


class PartitionTable(NamedTuple):
    """A partition table: `label` is dos or gpt, `id` the disk's: 8 hex digits, or a UUID."""

    label: str
    id: str
    partitions: tuple[Partition, ...]


def table_of(file: Path) -> PartitionTable:
    """The table of a disk or an image of one; raises UsageError for a file that has none."""
    done = _run("sfdisk", "fdisk", "--json", str(file))
    try:
        data: dict[str, Any] = json.loads(done.stdout)["partitiontable"]
        sector, disk = int(data.get("sectorsize", 512)), str(data["id"]).removeprefix("0x").lower()
        partitions = []
        for entry in data.get("partitions", []):
            # "FILE1", "/dev/mmcblk1p2": the number is what the name ends with.
            number = int(re.findall(r"\d+$", entry["node"])[0])
            uuid = str(entry.get("uuid", f"{disk}-{number:02x}")).lower()
            partitions.append(Partition(int(entry["start"]) * sector, int(entry["size"]) * sector, uuid))
        return PartitionTable(str(data["label"]), disk, tuple(partitions))
    except (ValueError, LookupError, TypeError):
        reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["sfdisk finds none"])[-1]
        raise UsageError(
            f"{file} has no partition table ({reason}): it is not an image of a whole disk"
        ) from None


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
    """Run a program of the host; raises LabError that names its package."""
    return subprocess.run(
        [contents.program(name, package, "reads"), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
        env=_ENVIRONMENT,
    )


class SystemIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What a system says of itself, on an image or as it runs; a field is empty where it says nothing.

    `uboot` is U-Boot's first line, `kernel` and `kernel_version` are `uname -r` and `uname -v`,
    `root` the PARTUUID of the partition with the root file system, `machine` the name that TI's
    images carry as their host name.
    """

    root: str = ""
    uboot: str = ""
    kernel: str = ""
    kernel_version: str = ""
    machine: str = ""
    os_release: dict[str, str] = {}
    build_id: str = ""

    @property
    def release(self) -> str:
        """The release by the rule for running boards: BUILD_ID, else VERSION_ID of os-release."""
        return provenance.release_of(self.build_id, self.os_release)

    @property
    def name(self) -> str:
        """What the operating system calls itself."""
        return self.os_release.get("PRETTY_NAME", "")


class Identity(SystemIdentity, frozen=True, kw_only=True):
    """What an image says of itself: `silicon` is the kind of chip (gp, hs-fs, hs-se) that its tiboot3.bin is
    for.
    """

    label: str
    disk: str
    loader: str = ""
    silicon: str = ""


def read(content: Path) -> Identity:
    """The identity of an image's raw content; raises UsageError without a partition table and for an image
    that is cut short, or LabError.
    """
    table, size = table_of(content), content.stat().st_size
    end = max((part.start + part.size for part in table.partitions), default=0)
    if end > size:
        raise UsageError(
            f"{content} is cut short: its partitions end at {end} bytes and its content at {size}; "
            f"fetch the image again"
        )
    facts: dict[str, Any] = {"label": table.label, "disk": table.id}
    for partition in table.partitions:
        system = file_system(content, partition)
        if system is None:
            continue
        if isinstance(system, Fat):
            facts |= _boot(system)
        elif root := _root(system):
            facts |= {**root, "root": partition.uuid}
    return Identity(**facts)


def _boot(system: Fat) -> dict[str, object]:
    """The boot partition: its boot loader, and the chips that it is for."""
    facts: dict[str, object] = {}
    names = system.names("/")
    for name in _LOADERS:
        if name in names and (text := banner(system.read(f"/{name}") or b"")):
            facts |= {"uboot": text, "loader": name}
            break
    used = system.read("/tiboot3.bin") if "tiboot3.bin" in names else None
    for name in sorted(names) if used else []:
        if (match := _SILICON.fullmatch(name)) and system.read(f"/{name}") == used:
            facts["silicon"] = _SILICON_NAMES[match[1]]
    return facts | _kernel(system, "", names, _KERNELS)


def _kernel(system: Fat | Ext, folder: str, names: list[str], files: Iterable[str]) -> dict[str, object]:
    """Release and version of the first of the wanted files that is a kernel."""
    for name in files:
        if name in names and (release := kernel(system.read(f"{folder}/{name}") or b"")):
            return dict(zip(("kernel", "kernel_version"), release, strict=True))
    return {}


def _root(system: Ext) -> dict[str, object]:
    os_release = system.read("/etc/os-release") or system.read("/usr/lib/os-release")
    if os_release is None:
        return {}
    own = system.read("/etc/evmperf-release") or b""
    facts: dict[str, object] = {
        "os_release": provenance.assignments(os_release.decode("utf-8", "replace")),
        "build_id": provenance.assignments(own.decode("utf-8", "replace")).get("BUILD_ID", ""),
    }
    names = system.names("/boot")
    more = sorted(n for n in names if n.startswith(("Image-", "vmlinuz-")))
    facts |= _kernel(system, "/boot", names, [*_KERNELS, *more])
    facts["machine"] = (system.read("/etc/hostname") or b"").decode("utf-8", "replace").strip()
    return facts


def banner(data: bytes) -> str:
    """U-Boot's first line as its file has it, "" for a file without: `U-Boot 2025.01 (Jan ...)`."""
    banners = _BANNER.findall(data)
    # tispl.bin holds SPL's banner; u-boot.img may hold both: U-Boot proper's counts.
    proper = [text for text in banners if not text.startswith(b"U-Boot SPL")]
    best: bytes = (proper or banners or [b""])[0]
    return best.decode("ascii", "replace")


def kernel(data: bytes) -> tuple[str, str] | None:
    """What `uname -r` and `uname -v` say of the first kernel in an Image, an EFI zboot kernel or a fitImage;
    None for none. As Linux's scripts/extract-vmlinux does, whatever looks compressed is unpacked.
    """
    packed = [match.start() for match in itertools.islice(_PACKED.finditer(data), _MOST_PACKED)]
    for plain in itertools.chain([data], (_unpacked(data[start:]) for start in packed)):
        if release := _LINUX.search(plain):
            return release[1].decode("ascii", "replace"), release[2].decode("ascii", "replace").strip()
    return None


def _unpacked(data: bytes) -> bytes:
    """The content of compressed data, as far as it can be read."""
    command = f"{' '.join(contents.decompressor(data))} | head -c {_KERNEL_LIMIT}"
    return subprocess.run(["sh", "-c", command], input=data, capture_output=True, check=False).stdout
