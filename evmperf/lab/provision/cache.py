"""The images of a lab host: each is fetched, unpacked and identified once.

`downloads/URL/` holds fetched files, `content/SHA256/` the raw content of a compressed image,
`files/` what is known of each file. Sessions that need the same image at the same time share it. When the
folder grows too large, the images that were used longest ago are removed.

EVMPERF_RELEASES names a lab's own list of releases, in YAML:

    "11.01":
      am64xx-evm:
        image: https://files.example.com/am64x/tisdk-default-image-am64xx-evm.rootfs.wic.xz
        sha256: 0f3c...
"""

import contextlib
import difflib
import fcntl
import functools
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
from evmperf.lab.provision.content import Hashes
from evmperf.lab.provision.identity import Identity
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.record import stored
from evmperf.lab.provision.writer import Progress
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import LabError, UsageError

RELEASES = "EVMPERF_RELEASES"
SCHEMA = 2
LIMIT_GIB = 40.0
"""How large the cache may grow, unless EVMPERF_IMAGES_GIB says otherwise."""


def quiet(_what: str, _done: int, _whole: int) -> None:
    """Tell nobody of progress."""


class ImageSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an image comes from, and the SHA-256 that the list of releases names."""

    image: str
    sha256: str = ""


class _Kept(msgspec.Struct):
    """What is known of a file, as image.json has it."""

    schema: int
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

    def get(self, source: str, *, sha256: str = "", tell: Progress = quiet) -> DiskImage:
        """The image of a file or a URL, unpacked and identified; `sha256` is expected, "": the one beside
        the file. Raises UsageError for an unusable image, LabError for a failed fetch or a full disk.
        """
        if download.is_url(source):
            return self._fetched(source, sha256, tell)
        file = Path(source).expanduser().absolute()
        if not file.is_file():
            raise UsageError(f"there is no image {source}")
        return self._of_file(source, file, sha256, tell)

    def _fetched(self, url: str, sha256: str, tell: Progress) -> DiskImage:
        folder = self.folder / "downloads" / hashlib.sha256(url.encode()).hexdigest()[:24]
        with self._held(folder):
            expected = sha256 or download.checksum(url)
            file = download.fetch(url, folder, functools.partial(tell, "fetch"), sha256=expected)
            try:
                image = self._of_file(url, file, expected, tell)
            except UsageError:
                # The file is unusable: the next call fetches it again.
                shutil.rmtree(folder, ignore_errors=True)
                raise
            download.note_sha256(folder, image.hashes.file)
            os.utime(folder)
        return image

    def _of_file(self, source: str, file: Path, sha256: str, tell: Progress) -> DiskImage:
        expected = sha256 or images.expected_checksum(file)
        stat = file.stat()
        # Identifies the file without reading it.
        key = f"{file}\n{stat.st_size}\n{stat.st_mtime_ns}\n{stat.st_ino}"
        packed = bool(contents.kind(file))
        with self._held(self.folder / "files" / hashlib.sha256(key.encode()).hexdigest()[:24]) as about:
            kept = stored(about / "image.json", _Kept)
            hashes = kept.hashes if kept and kept.schema == SCHEMA else None
            content = self._content(hashes) if packed and hashes else file
            if hashes is None or not (content.is_file() and content.stat().st_size == hashes.size):
                kept, hashes = None, self._read(file, expected, packed, tell)
                content = self._content(hashes) if packed else file
            images.check_sum(file, hashes.file, expected)
            says = kept.identity if kept else identity.read(content)
            if kept is None:
                write_whole(about / "image.json", msgspec.json.encode(_Kept(SCHEMA, hashes, says)))
        if packed:
            os.utime(content.parent)
        self._tidy(keep=content.parent)
        fetched = file.is_relative_to(self.folder / "downloads")
        name = download.name_of(file) if fetched else file.name
        image = DiskImage(source, file, content, hashes, says, name)
        images.check_whole(image)
        return image

    def _content(self, hashes: Hashes) -> Path:
        return self.folder / "content" / hashes.file / "content.img"

    def _read(self, file: Path, expected: str, packed: bool, tell: Progress) -> Hashes:
        """Hash and unpack a file; an image that is not compressed stays where it is."""
        work = self.folder / "content" / f".{os.getpid()}-{file.name}.new"
        work.parent.mkdir(parents=True, exist_ok=True)
        try:
            progress = functools.partial(tell, "read")
            hashes = contents.unpack(file, work if packed else None, progress)
            images.check_sum(file, hashes.file, expected)
            if packed:
                self._content(hashes).parent.mkdir(exist_ok=True)
                work.rename(self._content(hashes))
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
        tops = (self.folder / kind for kind in ("content", "downloads"))
        paths = [path for top in tops if top.is_dir() for path in top.iterdir() if path.is_dir()]
        paths.sort(key=lambda path: path.stat().st_mtime)
        whole = {path: _bytes(path) for path in paths}
        for path in paths:
            if sum(whole.values()) <= self._limit:
                return
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)
                del whole[path]


def _bytes(folder: Path) -> int:
    """What a folder takes on the disk."""
    with contextlib.suppress(OSError):
        return sum(path.stat().st_blocks * 512 for path in folder.iterdir())
    return 0


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
    data = yamlfile.read(path)
    releases = {str(name): machines for name, machines in data.items()} if isinstance(data, dict) else {}
    if given not in releases:
        near = difflib.get_close_matches(given, releases, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(releases) or 'none'}"
        raise UsageError(f"{path} has no release {given}; {hint}")
    machines = releases[given]
    if not isinstance(machines, dict):
        raise UsageError(f"{path}: release {given} must map machines to images")
    if machine not in machines:
        raise UsageError(
            f"{path} has no image of release {given} for the machine {machine or '(none)'}, which "
            f"the board file names as image.machine; there are {', '.join(map(str, machines))}"
        )
    try:
        entry = msgspec.convert(machines[machine], ImageSource)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}: release {given}, machine {machine}: {error}; write image: FILE or URL, and sha256"
        ) from None
    # Paths are relative to the list.
    where = entry.image if download.is_url(entry.image) else str(path.parent / entry.image)
    return ImageSource(where, entry.sha256.lower())


def open_image(given: str, board: Board | None = None, tell: Progress = quiet) -> DiskImage:
    """The image of `--image`, unpacked and checked to fit the board; raises UsageError or LabError."""
    source = find(given, board.options.image.machine if board else "")
    image = Cache().get(source.image, sha256=source.sha256, tell=tell)
    if board:
        images.check_fits(image, board)
    return image
