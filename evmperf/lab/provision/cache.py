"""The images of a lab host: each is fetched, unpacked and identified once.

Each image has a folder: the fetched file, the raw content of a compressed one, and what is known of it.
Sessions that need the same image at the same time share it. The time of a folder is that of its last use; the
host's owner removes what is old (docs/provisioning.md).
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from evmperf.boards.board import Board
from evmperf.lab.provision import content as contents
from evmperf.lab.provision import download, identity
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.lab.provision.image import DiskImage, check_fits
from evmperf.lab.provision.record import stored
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import LabError, UsageError

_SCHEMA = 5


class _Kept(msgspec.Struct):
    """What image.json keeps of a file in this `state`: this schema, and the file's size, time and inode."""

    state: str
    size: int
    sha256: str
    content_sha256: str
    identity: SystemIdentity


def open_image(
    given: str, board: Board | None = None, tell: Callable[[str], None] = lambda _line: None
) -> DiskImage:
    """The image of a file or a URL, unpacked, identified, compared with the checksum beside it, and fit for
    the board; `tell` gets a line for each fetch. Raises UsageError for an unusable image, LabError for a
    failed fetch or a full disk.
    """
    fetched = download.is_url(given)
    source = given if fetched else str(Path(given).expanduser().absolute())
    if not fetched and not Path(source).is_file():
        raise UsageError(f"there is no image {given}: give a file, or a URL with http:// or https://")
    with _held(source) as folder:
        expected = download.checksum(source)
        file = download.fetch(source, folder, tell) if fetched else Path(source)
        try:
            image = _of_file(source, file, folder)
            if expected not in ("", image.sha256):
                raise UsageError(
                    f"{source} has SHA-256 {image.sha256}, but {expected} is expected: fetch it again, "
                    f"or correct the expected checksum"
                )
        except UsageError:
            # The file is unusable: the next call fetches it again.
            shutil.rmtree(folder, ignore_errors=True)
            raise
    if board:
        check_fits(image, board)
    return image


def _of_file(source: str, file: Path, folder: Path) -> DiskImage:
    try:
        stat = file.stat()
        with file.open("rb") as stream:
            unpacker = contents.decompressor(stream.read(8))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    # Identifies the file without reading it.
    state = f"{_SCHEMA} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    content = folder / "content.img" if unpacker else file
    kept = stored(folder / "image.json", _Kept)
    known = kept and kept.state == state and content.is_file()
    if kept is None or not known or content.stat().st_size != kept.size:
        new = folder / "content.new" if unpacker else file
        if unpacker:
            contents.unpack(file, unpacker, new)
        says, of_content = identity.read(new), contents.sha256(new)
        of_file = contents.sha256(file) if unpacker else of_content
        kept = _Kept(state, new.stat().st_size, of_file, of_content, says)
        if unpacker:
            # Who writes the former content to a medium goes on with it.
            new.rename(content)
        write_whole(folder / "image.json", msgspec.json.encode(kept))
    os.utime(folder)
    name = download.called(source) if download.is_url(source) else file.name
    return DiskImage(source, file, content, kept.size, kept.sha256, kept.content_sha256, kept.identity, name)


@contextlib.contextmanager
def _held(source: str) -> Iterator[Path]:
    """The folder of a source, for one process at a time."""
    folder = folders.cache_dir() / "images" / hashlib.sha256(source.encode()).hexdigest()[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock").open("w")
    except OSError as error:
        raise LabError(f"{folder} cannot be made: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        yield folder
