"""The images of a lab host: each is fetched, unpacked and identified once.

Each image has a folder: the fetched file, the raw content of a compressed one, and what is known of it.
Sessions that need the same image at the same time share it. When the cache grows too large, the images that
were used longest ago are removed.

EVMPERF_RELEASES names a lab's own list of releases, in YAML:

    "11.01":
      am64xx-evm:
        image: https://files.example.com/am64x/tisdk-default-image-am64xx-evm.rootfs.wic.xz
        sha256: 0f3c...
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evmperf.boards import yamlfile
from evmperf.boards.board import Board
from evmperf.lab.provision import content as contents
from evmperf.lab.provision import download, identity
from evmperf.lab.provision import image as images
from evmperf.lab.provision.content import Hashes, Progress
from evmperf.lab.provision.identity import Identity
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.record import stored
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import LabError, UsageError

RELEASES = "EVMPERF_RELEASES"
SCHEMA = 3
LIMIT_GIB = 40.0
"""How large the cache may grow, unless EVMPERF_IMAGES_GIB says otherwise."""


class ImageSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an image comes from, and the SHA-256 that the list of releases names."""

    image: str
    sha256: str = ""


class _Kept(msgspec.Struct):
    """What is known of a file in this `state` (size, time, inode), as image.json has it; `name` is that of a
    file that was fetched, on its server.
    """

    schema: int
    state: str
    name: str
    hashes: Hashes
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

    def get(self, source: str, *, sha256: str = "", progress: Progress = contents.quiet) -> DiskImage:
        """The image of a file or a URL, unpacked and identified; `sha256` is expected, "": the one beside
        the file. Raises UsageError for an unusable image, LabError for a failed fetch or a full disk.
        """
        if download.is_url(source):
            with self._held(source) as folder:
                image = self._fetched(source, folder, sha256, progress)
        else:
            file = Path(source).expanduser().absolute()
            if not file.is_file():
                raise UsageError(f"there is no image {source}")
            with self._held(str(file)) as folder:
                image = self._of_file(
                    source, file, folder, sha256 or images.expected_checksum(file), progress
                )
        self._tidy(keep=folder)
        return image

    def _fetched(self, url: str, folder: Path, sha256: str, progress: Progress) -> DiskImage:
        expected = sha256 or download.checksum(url)
        try:
            file = download.fetch(url, folder, progress)
        except LabError:
            # What is known by its checksum needs no server.
            file, kept = download.target(url, folder), stored(folder / "image.json", _Kept)
            if not (kept and file.is_file() and expected == kept.hashes.file):
                raise
        try:
            return self._of_file(url, file, folder, expected, progress)
        except UsageError:
            # The file is unusable: the next call fetches it again.
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _of_file(self, source: str, file: Path, folder: Path, expected: str, progress: Progress) -> DiskImage:
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
                hashes = contents.unpack(file, new if packed else None, progress)
                images.check_sum(file, hashes.file, expected)
                if packed:
                    new.rename(content)
            finally:
                new.unlink(missing_ok=True)
            name = download.called(source) if download.is_url(source) else file.name
            kept = _Kept(SCHEMA, state, name, hashes, identity.read(content))
            write_whole(folder / "image.json", msgspec.json.encode(kept))
        images.check_sum(file, kept.hashes.file, expected)
        image = DiskImage(source, file, content, kept.hashes, kept.identity, kept.name)
        images.check_whole(image)
        os.utime(folder)
        return image

    @contextlib.contextmanager
    def _held(self, source: str) -> Iterator[Path]:
        """The folder of a source, for one process at a time."""
        inside = Path(source).parent
        of_source = self.folder / hashlib.sha256(source.encode()).hexdigest()[:24]
        # A fetched file that is given by its path is that image.
        folder = inside if inside.parent == self.folder else of_source
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / f".{folder.name}.lock").open("w")
        except OSError as error:
            raise LabError(f"{folder} cannot be made: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder.mkdir(exist_ok=True)
            yield folder

    def _tidy(self, keep: Path) -> None:
        """Remove what was used longest ago, until the cache is within its limit."""
        paths = sorted(
            (path for path in self.folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime
        )
        sizes = {path: sum(file.stat().st_blocks * 512 for file in path.iterdir()) for path in paths}
        for path in paths:
            if sum(sizes.values()) > self._limit and path != keep:
                shutil.rmtree(path, ignore_errors=True)
                del sizes[path]


def find(given: str, machine: str) -> ImageSource:
    """The file, URL or release that `--image` means for this machine; raises UsageError."""
    if download.is_url(given) or Path(given).expanduser().is_file():
        return ImageSource(given)
    path = Path(os.environ.get(RELEASES, ""))
    if not path.name:
        raise UsageError(
            f"there is no image {given}: it is neither a file nor a URL, and {RELEASES} names no list of "
            f"releases (docs/provisioning.md)"
        )
    try:
        releases = msgspec.convert(yamlfile.read(path), dict[str, dict[str, ImageSource]])
    except msgspec.ValidationError as error:
        raise UsageError(
            f'{path}: {error}; write "RELEASE": {{MACHINE: {{image: FILE or URL, sha256: SHA-256}}}}'
        ) from None
    if given not in releases:
        raise UsageError(f"{path} has no release {given}; there are {', '.join(releases) or 'none'}")
    if machine not in releases[given]:
        raise UsageError(
            f"{path} has no image of release {given} for the machine {machine or '(none)'}, which "
            f"the board file names as image.machine; there are {', '.join(releases[given])}"
        )
    entry = releases[given][machine]
    # Paths are relative to the list.
    where = entry.image if download.is_url(entry.image) else str(path.parent / entry.image)
    return ImageSource(where, entry.sha256.lower())


def open_image(given: str, board: Board | None = None, progress: Progress = contents.quiet) -> DiskImage:
    """The image of `--image`, unpacked and checked to fit the board; raises UsageError or LabError."""
    source = find(given, board.options.image.machine if board else "")
    image = Cache().get(source.image, sha256=source.sha256, progress=progress)
    if board:
        images.check_fits(image, board)
    return image
