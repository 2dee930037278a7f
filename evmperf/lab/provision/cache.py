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
from evmperf.lab.provision import image as images
from evmperf.lab.provision.content import Hashes
from evmperf.lab.provision.identity import Identity
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.record import stored
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import LabError, UsageError

SCHEMA = 4


class _Kept(msgspec.Struct):
    """What is known of a file in this `state` (size, time, inode), as image.json has it."""

    schema: int
    state: str
    hashes: Hashes
    identity: Identity


def open_image(
    given: str, board: Board | None = None, tell: Callable[[str], None] = lambda _line: None
) -> DiskImage:
    """The image of a file or a URL, unpacked, identified, compared with the checksum beside it, and fit for
    the board; `tell` gets a line for each fetch. Raises UsageError for an unusable image, LabError for a
    failed fetch or a full disk.
    """
    if download.is_url(given):
        with _held(given) as folder:
            image = _fetched(given, folder, tell)
    else:
        file = Path(given).expanduser().absolute()
        if not file.is_file():
            raise UsageError(f"there is no image {given}: give a file, or a URL with http:// or https://")
        with _held(str(file)) as folder:
            image = _of_file(given, file, folder, images.expected_checksum(file))
    if board:
        images.check_fits(image, board)
    return image


def _fetched(url: str, folder: Path, tell: Callable[[str], None]) -> DiskImage:
    expected = download.checksum(url)
    file = download.fetch(url, folder, tell)
    try:
        return _of_file(url, file, folder, expected)
    except UsageError:
        # The file is unusable: the next call fetches it again.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _of_file(source: str, file: Path, folder: Path, expected: str) -> DiskImage:
    stat = file.stat()
    # Identifies the file without reading it.
    state = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    packed = bool(contents.kind(file))
    content = folder / "content.img" if packed else file
    kept = stored(folder / "image.json", _Kept)
    known = kept and (kept.schema, kept.state) == (SCHEMA, state) and content.is_file()
    if kept is None or not known or content.stat().st_size != kept.hashes.size:
        new = folder / "content.new"
        try:
            hashes = contents.unpack(file, new if packed else None)
            images.check_sum(file, hashes.file, expected)
            kept = _Kept(SCHEMA, state, hashes, identity.read(new if packed else file))
            if packed:
                new.rename(content)
        finally:
            new.unlink(missing_ok=True)
        write_whole(folder / "image.json", msgspec.json.encode(kept))
    images.check_sum(file, kept.hashes.file, expected)
    name = download.called(source) if download.is_url(source) else file.name
    os.utime(folder)
    return DiskImage(source, file, content, kept.hashes, kept.identity, name)


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
