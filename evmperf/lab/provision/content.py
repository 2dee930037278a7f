"""The content of an image file, decompressed by the programs of this host, with its hashes."""

import contextlib
import errno
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError, one_line

_PIECE = 1 << 20


_FORMATS: dict[str, tuple[bytes, str, list[str]]] = {
    "xz": (b"\xfd7zXZ\x00", "xz-utils", ["xz", "-dc"]),
    "zst": (b"\x28\xb5\x2f\xfd", "zstd", ["zstd", "-dc", "--long=31"]),
    "gz": (b"\x1f\x8b", "gzip", ["gzip", "-dc"]),
    "bz2": (b"BZh", "bzip2", ["bzip2", "-dc"]),
}
"""By suffix what compressed files begin with, and the package and command that decompress its input."""
SUFFIXES = tuple(_FORMATS)
"""What compressed images are called: their last suffix."""


class Hashes(msgspec.Struct, frozen=True):
    """SHA-256 of an image file, SHA-256 of its content, and size of the content in bytes."""

    file: str
    content: str
    size: int


def kind(file: Path) -> str:
    """A file's compression (of SUFFIXES, or ""); raises UsageError if unreadable."""
    try:
        with file.open("rb") as stream:
            return of_bytes(stream.read(8))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def of_bytes(head: bytes) -> str:
    """How data that begins like this is compressed: one of SUFFIXES, "" for not at all."""
    return next((name for name, (magic, *_) in _FORMATS.items() if head.startswith(magic)), "")


def program(name: str, package: str, what: str) -> str:
    """The path of a program of this host, also one in sbin; raises LabError that names its package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise LabError(f"this host lacks {name}, which {what} images: install the package {package}")
    return found


def stream(file: BinaryIO, compression: str, name: str) -> Iterator[bytes]:
    """The decompressed content of an open file from its position on; raises UsageError, with the image's
    `name`, for a damaged or truncated file.
    """
    if not compression:
        while data := file.read(_PIECE):
            yield data
        return
    _, package, (command, *options) = _FORMATS[compression]
    words = [program(command, package, "decompresses"), *options]
    with subprocess.Popen(words, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        try:
            while data := process.stdout.read(_PIECE):
                yield data
            said = process.stderr.read(4096).decode("utf-8", "replace").strip().splitlines()
            if process.wait():
                reason = one_line(said[-1], 160) if said else f"{command} ended with {process.returncode}"
                raise UsageError(f"{name} is damaged or cut short: {reason}; fetch it again")
        finally:
            process.kill()


def check_room(error: OSError, folder: Path, what: str) -> None:
    """Raise LabError if a file could not be written for lack of space."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise LabError(
            f"there is no room in {folder} for {what}: clean up there, or point EVMPERF_CACHE at a "
            f"larger disk"
        ) from None


def unpack(file: Path, target: Path | None) -> Hashes:
    """Hash a file and its content, which is written to `target`; raises UsageError or LabError."""
    packed = kind(file)
    content, size = hashlib.sha256(), 0
    try:
        with file.open("rb", buffering=0) as source:
            of_file = hashlib.file_digest(source, "sha256").hexdigest() if packed else ""
            source.seek(0)
            with target.open("wb") if target else contextlib.nullcontext() as sink:
                for piece in stream(source, packed, str(file)):
                    content.update(piece)
                    size += len(piece)
                    if size > limits.IMAGE_BYTES:
                        much = f"{limits.IMAGE_BYTES >> 30} GiB"
                        raise UsageError(f"{file} unpacks to more than {much}, the limit of an image")
                    if sink:
                        sink.write(piece)
    except OSError as error:
        if target:
            check_room(error, target.parent, f"the content of {file}")
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    return Hashes(of_file or content.hexdigest(), content.hexdigest(), size)
