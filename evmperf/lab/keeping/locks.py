"""Locks on this machine for boards without a coordinator: one file per device, for all users.

The holder writes its record into the file. The kernel unlocks the file when the holder ends.
"""

import contextlib
import fcntl
import hashlib
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from evmperf.lab.keeping.wanted import HoldRecord
from evmperf.model.errors import LabError

_SYSTEM = Path("/run/lock")
"""Debian's folder for locks of all users (Filesystem Hierarchy Standard 3.0, 5.9)."""
_HOLDER = msgspec.json.Decoder(HoldRecord)
_SIZE = 65536
"""Maximum bytes read of a lock's file."""


class Busy(Exception):
    """Somebody has the lock; `holder` is their record, None if it is invalid."""

    def __init__(self, holder: HoldRecord | None) -> None:
        super().__init__("the lock is taken")
        self.holder = holder


class Locks:
    """The locks of one board; all, or none and Busy or LabError."""

    def __init__(self, devices: Sequence[str], holder: HoldRecord) -> None:
        self._files: dict[Path, int] = {}
        self._holder = holder
        with contextlib.ExitStack() as failing:
            failing.callback(self.release)
            for path in sorted({_path(device) for device in devices}):
                self._files[path] = _lock(path, holder)
            failing.pop_all()

    def describe(self, holder: HoldRecord) -> None:
        """Write the holder's new record."""
        self._holder = holder
        for file in self._files.values():
            _write(file, holder)

    def keep(self) -> None:
        """Lock deleted files again; raises Busy if another holder has one now, or LabError."""
        for path, file in self._files.items():
            if not _is_at(path, file):
                self._files[path] = _lock(path, self._holder)
                os.close(file)

    def release(self) -> None:
        """Unlock all files."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.ftruncate(file, 0)
            os.close(file)
        self._files.clear()


def folder() -> Path:
    """The folder of the locks: $EVMPERF_LOCKS, /run/lock, or that of temporary files."""
    if own := os.environ.get("EVMPERF_LOCKS"):
        return Path(own)
    return _SYSTEM if os.access(_SYSTEM, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _path(device: str) -> Path:
    return folder() / f"evmperf-{hashlib.sha256(device.encode()).hexdigest()[:16]}.lock"


def _lock(path: Path, holder: HoldRecord) -> int:
    while True:
        try:
            file = _open(path)
        except OSError as error:
            raise LabError(f"{path}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(OSError):  # flock decides, this one can be queried
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _range(fcntl.F_WRLCK))
            if _is_at(path, file):
                _write(file, holder)
                return file
            os.close(file)  # deleted between opening and locking: it locks nothing
        except BlockingIOError:
            record = os.pread(file, _SIZE, 0)
            os.close(file)
            raise Busy(_decoded(record)) from None
        except OSError as error:
            os.close(file)
            raise LabError(f"{path}: cannot be written: {error.strerror}") from None


def _range(kind: int) -> bytes:
    """A struct flock for a whole file (fcntl(2))."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def _is_at(path: Path, file: int) -> bool:
    """Whether a file is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False


def _decoded(text: bytes) -> HoldRecord | None:
    """A holder's record; None for anything else."""
    try:
        return _HOLDER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _open(path: Path) -> int:
    # In a shared folder the kernel refuses O_CREAT on another user's file
    # (fs.protected_regular), so try without first; never follow a link.
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(2):
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(file, 0o666)
                return file
    return os.open(path, flags)


def _write(file: int, holder: HoldRecord) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, msgspec.json.encode(holder), 0)


def held() -> list[HoldRecord]:
    """The records of the holders of all locks on this machine."""
    records: list[HoldRecord] = []
    for path in sorted(folder().glob("evmperf-*.lock")):
        with contextlib.suppress(OSError):
            # Do not follow a link, do not wait on a pipe.
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                # The query takes no lock, which would block others.
                asked = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _range(fcntl.F_RDLCK))
                is_locked = struct.unpack_from("h", asked)[0] != fcntl.F_UNLCK
                record = _decoded(os.pread(file, _SIZE, 0)) if is_locked else None
            finally:
                os.close(file)
            if record and record not in records:  # a board with several devices
                records.append(record)
    return records


def identity() -> str:
    """Identifies this folder of locks among hosts and containers of the same name."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    status = folder().stat()
    return f"{boot}-{status.st_dev:x}-{status.st_ino:x}"
