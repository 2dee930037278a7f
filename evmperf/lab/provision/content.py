"""The content of an image file, decompressed by the programs of this host."""

import errno
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError, one_line

_FORMATS: dict[str, tuple[bytes, str, list[str]]] = {
    "xz": (b"\xfd7zXZ\x00", "xz-utils", ["xz", "-dc"]),
    "zst": (b"\x28\xb5\x2f\xfd", "zstd", ["zstd", "-dc", "--long=31"]),
    "gz": (b"\x1f\x8b", "gzip", ["gzip", "-dc"]),
    "bz2": (b"BZh", "bzip2", ["bzip2", "-dc"]),
}
"""By suffix what compressed data begins with, and the package and command that decompress their input."""


def program(name: str, package: str, what: str) -> str:
    """The path of a program of this host, also one in sbin; raises LabError that names its package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise LabError(f"this host lacks {name}, which {what} images: install the package {package}")
    return found


def decompressor(head: bytes) -> list[str]:
    """The command that decompresses data that begins like this, [] for plain data; raises LabError."""
    for magic, package, (name, *options) in _FORMATS.values():
        if head.startswith(magic):
            return [program(name, package, "decompresses"), *options]
    return []


def check_room(reason: str, folder: Path, what: str) -> None:
    """Raise LabError if a file could not be written for lack of space, as the system's words say."""
    if any(os.strerror(number) in reason for number in (errno.ENOSPC, errno.EDQUOT)):
        raise LabError(
            f"there is no room in {folder} for {what}: clean up there, or point EVMPERF_CACHE at a "
            f"larger disk"
        ) from None


def unpack(file: Path, command: list[str], target: Path) -> None:
    """Write what a command makes of a compressed file; raises UsageError for a damaged one, LabError for a
    full disk.
    """
    with file.open("rb") as source, target.open("wb") as sink:
        limited = [program("prlimit", "util-linux", "limits"), f"--fsize={limits.IMAGE_BYTES}", *command]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            limited, stdin=source, stdout=sink, stderr=subprocess.PIPE, env=environment, check=False
        )
    if not done.returncode:
        return
    lines = done.stderr[:4096].decode("utf-8", "replace").strip().splitlines()
    reason = lines[-1] if lines else f"{command[0]} ended with {done.returncode}"
    size = target.stat().st_size
    target.unlink()
    check_room(reason, target.parent, f"the content of {file}")
    # xz leaves holes, so that its file may be smaller than where it was stopped.
    if size >= limits.IMAGE_BYTES or os.strerror(errno.EFBIG) in reason:
        raise UsageError(f"{file} unpacks to more than {limits.IMAGE_BYTES >> 30} GiB, the limit of an image")
    raise UsageError(f"{file} is damaged or cut short: {one_line(reason, 160)}; fetch it again")


def sha256(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
