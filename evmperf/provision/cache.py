"""The images of a lab host: each is fetched, unpacked and identified once.

`downloads/URL/` holds fetched files, `content/SHA256/` the raw content of an image (sparse) and its
identity. Sessions that need the same image at the same time share it. When the folder grows too
large, the images that were used longest ago are removed.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from evmperf.boards.board import Board
from evmperf.model.errors import LabError, UsageError
from evmperf.provision import catalogue, download, identity
from evmperf.provision import content as contents
from evmperf.provision import image as images
from evmperf.provision.content import Hashes
from evmperf.provision.identity import Identity
from evmperf.provision.image import DiskImage
from evmperf.runs import folders

SCHEMA = 1
LIMIT_GIB = 40.0
"""How large the cache may grow, unless EVMPERF_IMAGES_GIB says otherwise."""

_Made = TypeVar("_Made")

Tell = Callable[[str, int, int], None]
"""Receives the activity (fetch, read), the bytes done and the bytes in total."""


def quiet(_what: str, _done: int, _whole: int) -> None:
    """A Tell that does nothing."""


class _Kept(msgspec.Struct):
    """The identity of an image, as image.json has it."""

    schema: int
    identity: Identity


class Cache:
    """The images of this host below `folder`."""

    def __init__(self, folder: Path | None = None, limit_gib: float | None = None) -> None:
        self.folder = folder or folders.cache_dir() / "images"
        given = os.environ.get("EVMPERF_IMAGES_GIB", "")
        try:
            self._limit = (limit_gib or float(given or LIMIT_GIB)) * (1 << 30)
        except ValueError:
            raise UsageError(f"EVMPERF_IMAGES_GIB={given} is not a number of GiB") from None

    def get(self, source: str, *, sha256: str = "", tell: Tell = quiet) -> DiskImage:
        """The image of a file or a URL, unpacked and identified; `sha256` is expected, "": the one beside
        the file. Raises UsageError for an unusable image, LabError for a failed fetch or a full disk.
        """
        if download.is_url(source):
            return self._fetched(source, sha256, tell)
        file = Path(source).expanduser().absolute()
        if not file.is_file():
            raise UsageError(f"there is no image {source}")
        return self._of_file(source, file, sha256, tell)

    def _fetched(self, url: str, sha256: str, tell: Tell) -> DiskImage:
        folder = self.folder / "downloads" / download.folder_name(url)
        with self._held(folder):
            expected = sha256 or download.checksum(url)
            file = download.fetch(
                url, folder, lambda done, whole: tell("fetch", done, whole), sha256=expected
            )
            try:
                image = self._of_file(url, file, expected, tell)
            except UsageError:
                # The file is unusable: the next call fetches it again.
                shutil.rmtree(folder, ignore_errors=True)
                raise
            download.note_sha256(folder, image.hashes.file)
            os.utime(folder)
        return image

    def _of_file(self, source: str, file: Path, sha256: str, tell: Tell) -> DiskImage:
        expected = sha256 or images.expected_checksum(file)
        stat = file.stat()
        # Identifies the file without reading it.
        key = f"{file}\n{stat.st_size}\n{stat.st_mtime_ns}\n{stat.st_ino}"
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        with self._held(self.folder / "files" / name) as known:
            hashes = _read(known / "hashes.json", Hashes)
            if hashes is None or not self._made(file, hashes):
                hashes = self._read(file, expected, tell)
                (known / "hashes.json").write_bytes(msgspec.json.encode(hashes))
            images.check_sum(file, hashes.file, expected)
            folder = self.folder / "content" / hashes.file
            content = _content(file, folder)
            kept = _read(folder / "image.json", _Kept)
            if kept is None or kept.schema != SCHEMA:
                kept = _Kept(SCHEMA, identity.read(content))
                new = folder / "image.json.new"
                new.write_bytes(msgspec.json.encode(kept))
                new.rename(folder / "image.json")
            os.utime(folder)
        self._tidy(keep=folder)
        fetched = file.is_relative_to(self.folder / "downloads")
        name = download.name_of(file) if fetched else file.name
        return images.checked(DiskImage(source, file, content, hashes, kept.identity, name))

    def _made(self, file: Path, hashes: Hashes) -> bool:
        content = _content(file, self.folder / "content" / hashes.file)
        return content.is_file() and content.stat().st_size == hashes.size

    def _read(self, file: Path, expected: str, tell: Tell) -> Hashes:
        """Hash and unpack a file; an image that is not compressed stays where it is."""

        def progress(done: int, whole: int) -> None:
            tell("read", done, whole)

        folder = self.folder / "content"
        folder.mkdir(parents=True, exist_ok=True)
        packed = contents.kind(file)
        work = folder / f".{os.getpid()}-{file.name}.new"
        try:
            hashes = contents.unpack(file, work if packed else None, progress)
            images.check_sum(file, hashes.file, expected)
            final = folder / hashes.file
            final.mkdir(exist_ok=True)
            if packed:
                work.rename(final / "content.img")
        finally:
            work.unlink(missing_ok=True)
        return hashes

    @contextlib.contextmanager
    def _held(self, folder: Path) -> Iterator[Path]:
        """The folder, for one process at a time."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder.parent / f".{folder.name}.lock").open("w")
        except OSError as error:
            raise LabError(f"{folder} cannot be made: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder

    def _tidy(self, keep: Path) -> None:
        """Remove what was used longest ago, until the cache is within its limit."""
        found = [path for kind in ("content", "downloads") for path in self._folders(kind)]
        found.sort(key=lambda path: path.stat().st_mtime)
        whole = {path: _bytes(path) for path in found}
        for path in found:
            if sum(whole.values()) <= self._limit:
                return
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)
                del whole[path]

    def _folders(self, kind: str) -> list[Path]:
        top = self.folder / kind
        return [path for path in top.iterdir() if path.is_dir()] if top.is_dir() else []


def _content(file: Path, folder: Path) -> Path:
    return folder / "content.img" if contents.kind(file) else file


def _bytes(folder: Path) -> int:
    """What a folder takes on the disk: an image's holes take nothing."""
    with contextlib.suppress(OSError):
        return sum(path.stat().st_blocks * 512 for path in folder.iterdir())
    return 0


def _read(file: Path, kind: type[_Made]) -> _Made | None:
    """What a file of JSON holds; None if it is missing, damaged or of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):
        return None


def open_image(given: str, board: Board | None = None, tell: Tell = quiet) -> DiskImage:
    """The image of `--image`, unpacked and checked to fit the board; raises UsageError or LabError."""
    source = catalogue.find(given, board.options.image.machine if board else "")
    image = Cache().get(source.where, sha256=source.sha256, tell=tell)
    if board:
        images.check_fits(image, board)
    return image
