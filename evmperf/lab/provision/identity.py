"""What an image is, read without booting or mounting it: its partitions, and what its kernels and boot
loaders say of themselves. A board that runs the image shows the same facts on its console to compare with.

Programs of Debian read it, without root: partx, mtools, debugfs of e2fsprogs.
"""

import contextlib
import itertools
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from evmperf.lab.provision import content as contents
from evmperf.measure import provenance
from evmperf.model.errors import LabError, UsageError

_TIMEOUT_S = 120.0
_LINKS = 8
_SECTOR = 512
_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}
_LOADERS = ("u-boot.img", "u-boot.bin")
_KERNELS = ("Image", "Image.gz", "fitImage", "vmlinuz", "zImage")
_PACKED = re.compile(rb"\x1f\x8b\x08|\xfd7zXZ\0|\x28\xb5\x2f\xfd|BZh[1-9]1AY")
_MOST_PACKED = 64
_KERNEL_LIMIT = 1 << 28

_BANNER = re.compile(rb"U-Boot 20\d\d\.\d\d[^\0\n\r(]{0,80}\([^)\0\n]{10,60}\)")
_LINUX = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d+ [^\0\n]+)")

Read = Callable[[str], bytes]
"""Gives the content of a file by its path, b"" for one that is not there."""


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


def read(content: Path) -> SystemIdentity:
    """The identity of an image's raw content; raises UsageError without a partition table and for an image
    that is cut short, or LabError.
    """
    facts: dict[str, Any] = {}
    size = content.stat().st_size
    for start, end, uuid in _partitions(content):
        if end > size:
            raise UsageError(
                f"{content} is cut short: a partition ends at {end} bytes and its content at {size}; "
                f"fetch the image again"
            )
        with content.open("rb") as file:
            file.seek(start)
            head = file.read(2048)
        # FAT: the signature of a boot sector, and its type in one of two places.
        if head[510:512] == b"\x55\xaa" and (head[54:57] == b"FAT" or head[82:85] == b"FAT"):
            facts |= {name: text for name, text in _boot(_fat(content, start)).items() if text}
        elif head[1080:1082] == b"\x53\xef" and (root := _root(_ext(content, start))):
            facts |= {**root, "root": uuid}
    return SystemIdentity(**facts)


def _partitions(content: Path) -> Iterator[tuple[int, int, str]]:
    """Each partition's start and end in bytes, and its PARTUUID; raises UsageError for a file without any."""
    done = _run(
        "partx", "util-linux", "--raw", "--noheadings", "--output", "START,SECTORS,UUID", str(content)
    )
    rows = [line.split() for line in done.stdout.decode("ascii", "replace").splitlines()]
    if not rows or any(len(row) != 3 for row in rows):
        raise UsageError(f"{content} has no partition table: it is not an image of a whole disk")
    for start, sectors, uuid in rows:
        yield int(start) * _SECTOR, (int(start) + int(sectors)) * _SECTOR, uuid.lower()


def _fat(image: Path, start: int) -> Read:
    """Reads a FAT file system by mtools."""
    where = f"{image}@@{start}"
    return lambda path: _run("mcopy", "mtools", "-n", "-i", where, f"::{path}", "-").stdout


def _ext(image: Path, start: int) -> Read:
    """Reads an ext2, ext3 or ext4 file system by debugfs, and follows symbolic links at the end of a path."""
    where = f"{image}?offset={start}"

    def ask(request: str, path: str) -> bytes:
        # What debugfs says of itself, and its errors, go to stderr.
        quoted = path.replace('"', '""')
        return _run("debugfs", "e2fsprogs", "-R", f'{request} "{quoted}"', where).stdout

    def content(path: str) -> bytes:
        for _ in range(_LINKS):
            about = ask("stat", path).decode("utf-8", "replace")
            if "Type: regular" in about:
                return ask("cat", path)
            if not (link := re.search(r'Fast link dest: "(.*)"', about)):
                break
            path = str(PurePosixPath(path).parent / link[1])
        return b""

    return content


def _run(name: str, package: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the host; raises LabError that names its package, or its time."""
    command = [contents.program(name, package, "reads"), *words]
    try:
        return subprocess.run(
            command, input=b"", capture_output=True, timeout=_TIMEOUT_S, check=False, env=_ENVIRONMENT
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{name} takes more than {_TIMEOUT_S:g} s: look at the image's disk") from None


def _boot(system: Read) -> dict[str, str]:
    """The boot partition: its boot loader, and a kernel."""
    banners = (banner(system(f"/{name}")) for name in _LOADERS)
    return {"uboot": next(filter(None, banners), ""), **_kernel(system, "")}


def _kernel(system: Read, folder: str) -> dict[str, str]:
    """Release and version of the first file that is a kernel."""
    for name in _KERNELS:
        if found := kernel(system(f"{folder}/{name}")):
            return {"kernel": found[0], "kernel_version": found[1]}
    return {}


def _root(system: Read) -> dict[str, Any]:
    os_release = system("/etc/os-release") or system("/usr/lib/os-release")
    if not os_release:
        return {}
    own = provenance.assignments(system("/etc/evmperf-release").decode("utf-8", "replace"))
    return {
        "os_release": provenance.assignments(os_release.decode("utf-8", "replace")),
        "build_id": own.get("BUILD_ID", ""),
        "machine": system("/etc/hostname").decode("utf-8", "replace").strip(),
        **_kernel(system, "/boot"),
    }


def banner(data: bytes) -> str:
    """U-Boot's first line (SPL's is another), "" for data without: `U-Boot 2025.01 (Jan ...)`."""
    found = _BANNER.search(data)
    return found[0].decode("ascii", "replace") if found else ""


def kernel(data: bytes) -> tuple[str, str] | None:
    """What `uname -r` and `uname -v` say of the first kernel in an Image, an EFI zboot kernel or a fitImage;
    None for none. As Linux's scripts/extract-vmlinux does, whatever looks compressed is unpacked; raises
    LabError if no kernel is found and a program for something of it is missing.
    """
    packed = [match.start() for match in itertools.islice(_PACKED.finditer(data), _MOST_PACKED)]
    for plain in itertools.chain([data], (_unpacked(data[start:]) for start in packed)):
        if release := _LINUX.search(plain):
            return release[1].decode("ascii", "replace"), release[2].decode("ascii", "replace").strip()
    for start in packed:
        contents.decompressor(data[start:])
    return None


def _unpacked(data: bytes) -> bytes:
    """The content of compressed data, as far as it can be read here."""
    with contextlib.suppress(LabError):  # of a program that is missing
        command = f"{' '.join(contents.decompressor(data))} | head -c {_KERNEL_LIMIT}"
        return subprocess.run(["sh", "-c", command], input=data, capture_output=True, check=False).stdout
    return b""
