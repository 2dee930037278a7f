"""Writing an image to a medium (a card, a disk, or a file that stands for one), and reading it back.

A medium is on this host or on its exporter's, which is reached by the words before a command that Labgrid
gives.
"""

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from evmperf.lab.provision.image import DiskImage
from evmperf.model.errors import LabError, UsageError, one_line

_BLOCK = 1 << 20
_TIMEOUT_S = 3600.0
_LOOK = (
    "[ -b {0} ] && lsblk --bytes --noheadings --raw --output SIZE,RO,TYPE,MOUNTPOINT {0} "
    "|| stat --dereference --format '%s 0 file' {0}"
)
"""A line each for a medium and what is built on it: bytes, 1 for read-only, kind, where it is mounted."""
_READ = "dd if={0} bs=1M count={1} iflag=fullblock$([ -b {0} ] && echo ,direct) | head -c {2} | sha256sum"
"""The SHA-256 of a medium's first bytes, past the caches."""


def write(
    path: str,
    image: DiskImage,
    begins: Callable[[], None] = lambda: None,
    copy: Callable[[str, str], None] | None = None,
    prefix: Sequence[str] = (),
) -> None:
    """Make a medium equal to an image by `copy` (of a file to a path), else by dd, and read it back once.
    `begins` is called before the first byte, `prefix` are the words before a command on the medium's host.

    Raises UsageError for a medium that is too small, LabError for one that cannot be written or read back.
    """
    size = image.size
    room = _room(path, prefix)
    if size > room:
        raise UsageError(f"the image has {size} bytes and {path} only {room}: use a larger medium")
    begins()
    (copy or _dd)(str(image.content), path)
    done = run(_READ.format(shlex.quote(path), -(-size // _BLOCK), size), prefix)
    found = done.stdout.split(" ")[0]
    if "error" in done.stderr.lower() or len(found) != 64:
        raise LabError(f"{path} cannot be read back ({_reason(done.stderr)}): replace the medium")
    check(path, found, image)


def check(path: str, found: str, image: DiskImage) -> None:
    """Raise LabError if the SHA-256 of what was read back is not the image's."""
    if found != image.content_sha256:
        raise LabError(
            f"{path} reads back with SHA-256 {found[:12]}, and {image.name} has {image.content_sha256[:12]}: "
            f"write it again, and replace the medium if it does not keep its data then either"
        )


def _room(path: str, prefix: Sequence[str]) -> int:
    """The size of a medium in bytes; raises LabError for one that is missing, empty, read-only or in use."""
    done = run(_LOOK.format(shlex.quote(path)), prefix)
    rows = [line.split() for line in done.stdout.splitlines()]
    if done.returncode or not rows or not all(row[0].isdigit() and len(row) > 2 for row in rows):
        raise LabError(
            f"{path} cannot be looked at ({_reason(done.stderr)}): check the card, and the switch's cable "
            f"to its host"
        )
    (size, read_only, *_), *parts = rows
    if any(len(row) > 3 for row in rows) or any(kind != "part" for _, _, kind in parts):
        raise LabError(f"{path} is in use there (mounted?): unmount its partitions")
    if read_only == "1":
        raise LabError(f"{path} is write-protected: move the card's lock")
    if not int(size):
        raise LabError(f"{path} has no medium: check the card and the card switch")
    return int(size)


def _dd(content: str, path: str) -> None:
    """Write a file to a medium of this host."""
    try:
        # Of a block device O_EXCL fails while it, or a partition of it, is mounted, part of another, or held
        # by another evmperf.
        medium = os.open(path, os.O_RDWR | (os.O_EXCL if Path(path).is_block_device() else 0))
    except OSError as error:
        raise LabError(f"{path} cannot be held ({error.strerror}): end what uses it there") from None
    try:
        done = run(f"dd if={shlex.quote(content)} of={shlex.quote(path)} bs=1M conv=notrunc,fsync")
    finally:
        os.close(medium)
    if done.returncode:
        raise LabError(
            f"{path} cannot be written ({_reason(done.stderr)}): correct that, or replace the medium"
        )


def run(command: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command of shell here, or on the host that `prefix` reaches; raises LabError if it cannot be
    started or does not end.
    """
    words = [*prefix, shlex.join(["sh", "-c", command])] if prefix else ["sh", "-c", command]
    try:
        return subprocess.run(
            words, input="", capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        where = " on the host of the medium" if prefix else ""
        raise LabError(f"`{command[:80]}` does not end{where}: {one_line(error, 200)}") from None


def _reason(said: str) -> str:
    """What dd says that went wrong; else the last line."""
    lines = [line for line in said.splitlines() if line.startswith("dd:")] or said.splitlines()[-1:]
    return one_line(lines[0], 160) if lines else "it says nothing of it"
