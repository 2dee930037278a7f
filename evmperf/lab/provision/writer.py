"""Writing an image to a medium (a card, a disk, or a file that stands for one), and reading it back.

A medium is on this host or on its exporter's, which is reached by the words before a command that Labgrid
gives. There a program of Python's own library holds it, so that nobody mounts or writes it meanwhile.
"""

import contextlib
import errno
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evmperf.lab.provision.image import DiskImage
from evmperf.model.errors import LabError, UsageError, one_line

Progress = Callable[[str, int, int], None]
"""Told what is being done (fetch, read, write, verify), and how many bytes of how many are: of a write when
no obstacle is left, and before the first byte, none.
"""

_HEAD = 1 << 20
"""Bytes at the beginning that are written last: no board starts without the partition table in them."""
_READ_S = 3600.0
_HOLD = """
import fcntl, os, stat, sys
path = sys.argv[1]
try:
    block = stat.S_ISBLK(os.stat(path).st_mode)
    # Of a block device O_EXCL fails while it, or a partition of it, is mounted or part of another.
    medium = os.open(path, os.O_RDWR | (os.O_EXCL if block else 0))
    if block and any(fcntl.ioctl(medium, 0x125E, bytes(4))):  # BLKROGET
        raise OSError(30, "")
    fcntl.flock(medium, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("size", os.lseek(medium, 0, os.SEEK_END), flush=True)
    sys.stdin.read()
except OSError as error:
    print("error", error.errno, flush=True)
"""
_NOT_OPENED = {
    errno.EBUSY: "is in use there (mounted?): unmount its partitions",
    errno.EAGAIN: "is being written by another process: wait for it, or end it",
    errno.EACCES: "may not be written by this user: add the user to the group of the device "
    "(disk), or remove the write protection",
    errno.EPERM: "may not be written: it is write-protected",
    errno.EROFS: "is write-protected: move the card's lock",
    errno.ENOENT: "is missing: check the card, and the switch's cable to its host",
    errno.ENOMEDIUM: "has no medium: put a card in",
}


def write(
    path: str,
    image: DiskImage,
    progress: Progress,
    copy: Callable[[str, str], None] | None = None,
    prefix: Sequence[str] = (),
) -> dict[str, Any]:
    """Make a medium equal to an image by `copy` (of a file to a path), else by dd, and read it back once;
    returns the bytes `written`. `prefix` are the words before a command on the medium's host.

    Raises UsageError for a medium that is too small, LabError for one that cannot be written or read back.
    """
    size = image.hashes.size
    with _held(path, prefix) as room:
        if size > room:
            raise UsageError(f"the image has {size} bytes and {path} only {room}: use a larger medium")
        progress("write", 0, size)
        (copy or _dd)(str(image.content), path)
        progress("verify", 0, size)
        found = _sum(path, size, prefix)
    if found != image.hashes.content:
        raise LabError(
            f"{path} reads back with SHA-256 {found[:12]}, and {image.name} has {image.hashes.content[:12]}: "
            f"write it again, and replace the medium if it does not keep its data then either"
        )
    progress("verify", size, size)
    return {"written": size}


@contextlib.contextmanager
def _held(path: str, prefix: Sequence[str]) -> Iterator[int]:
    """The size of a medium in bytes, which is ours until the end; raises LabError if it cannot be."""
    command = _there(prefix, ["python3", "-c", _HOLD, path])
    try:
        holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise LabError(f"{command[0]} cannot be started: {error.strerror}") from None
    with holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stderr
        try:
            word, _, number = holder.stdout.readline(200).strip().partition(" ")
            if word not in ("size", "error") or not number.isdigit():
                lines = holder.stderr.read(4096).strip().splitlines() or ["it says nothing of it"]
                raise LabError(f"the host of {path} cannot look at it: {one_line(lines[-1], 160)}")
            if word == "error":
                reason = _NOT_OPENED.get(int(number), f"cannot be opened: {errno.errorcode.get(int(number))}")
                raise LabError(f"{path} {reason}")
            if not int(number):
                raise LabError(f"{path} has no medium: check the card and the card switch")
            yield int(number)
        finally:
            holder.stdin.close()
            holder.stdout.close()
            holder.kill()


def _dd(content: str, path: str) -> None:
    """Write a file to a medium of this host: zeros where the partition table goes, then it all, that last."""
    table, rest = ["bs=1M", "count=1"], ["bs=1M", "skip=1", "seek=1"]
    for source, words in (("/dev/zero", table), (content, rest), (content, table)):
        done = subprocess.run(
            ["dd", f"if={source}", f"of={path}", *words, "conv=notrunc,fsync"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise LabError(
                f"{path} cannot be written ({_reason(done.stderr)}): the medium is dying or has bad "
                f"contact, replace it"
            )


def _sum(path: str, size: int, prefix: Sequence[str]) -> str:
    """SHA-256 of what a medium holds, read past the caches."""
    medium = shlex.quote(path)
    past = f"$([ -b {medium} ] && echo ,direct)"
    blocks = -(-size // _HEAD)
    words = [
        "sh",
        "-c",
        f"dd if={medium} bs=1M count={blocks} iflag=fullblock{past} | head -c {size} | sha256sum",
    ]
    try:
        done = subprocess.run(
            _there(prefix, words), capture_output=True, text=True, timeout=_READ_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{path} was not read back within {_READ_S:g} s: replace the medium") from None
    found = done.stdout.split(" ")[0]
    if "error" in done.stderr.lower() or len(found) != 64:
        raise LabError(
            f"{path} cannot be read back ({_reason(done.stderr)}): the medium is dying or has bad "
            f"contact, replace it"
        )
    return found


def _there(prefix: Sequence[str], words: Sequence[str]) -> list[str]:
    """A command on the medium's host, whose shell ssh gives its words to."""
    return [*prefix, shlex.join(words)] if prefix else list(words)


def _reason(said: str) -> str:
    """What dd says that went wrong; else its last line."""
    lines = [line for line in said.splitlines() if line.startswith("dd:")] or said.splitlines() or ["nothing"]
    return one_line(lines[0], 160)
