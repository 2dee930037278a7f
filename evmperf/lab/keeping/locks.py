"""Locks on this machine: a file per device or place, for all users.

The holder writes its record into the file. The kernel unlocks the file when the holder and the processes that
inherited it have ended.
"""

import contextlib
import fcntl
import hashlib
import os
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from evmperf.lab.keeping.wanted import HoldRecord
from evmperf.model.errors import LabError

_SYSTEM = Path("/run/lock")
"""Debian's folder for locks of all users (Filesystem Hierarchy Standard 3.0, 5.9)."""
_RECORD = msgspec.json.Decoder(HoldRecord)
_SIZE = 65536
"""Maximum bytes read of a lock's file."""
_WRITTEN_S = 1.0
"""A holder writes its record so long after it has the lock, on a busy machine."""
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_LOCK, _UNLOCK, _QUERY = (
    struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)  # a struct flock for a whole file (fcntl(2))
    for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK, fcntl.F_RDLCK)
)
"""Of an open file description, as flock(2), but to be queried."""


class Busy(Exception):
    """Somebody has the lock; `holder` is their record, None if it is invalid."""

    def __init__(self, holder: HoldRecord | None) -> None:
        super().__init__("the lock is taken")
        self.holder = holder


class Locks:
    """The locks of one board, all or none; with `shared` those of the process that started this one. Raises
    Busy or LabError.
    """

    def __init__(self, names: Sequence[str], *, shared: bool = False) -> None:
        self._files: dict[Path, int] = {}
        self._ours = False
        with contextlib.ExitStack() as failing:
            failing.callback(self.close)
            for path in sorted(map(_path, set(names))):  # in one order: of who starts at once one has all
                self._files[path] = _open(path) if shared else _lock(path)
            if shared and not all(map(_is_locked, self._files.values())):
                raise LabError("the process that started this session does not hold the board any more")
            failing.pop_all()
        self._ours = not shared
        self.left = _record(next(iter(self._files.values())))
        """The record of a holder that was killed, kept for the next one unless it is taken from here."""

    def describe(self, record: HoldRecord | None) -> None:
        """Write the holder's record into the files, or nothing."""
        for file in self._files.values():
            os.ftruncate(file, 0)
            os.pwrite(file, msgspec.json.encode(record) if record else b"", 0)

    def intact(self) -> bool:
        """Whether no file was deleted, so that nobody else can lock the board."""
        return all(_is_at(path, file) for path, file in self._files.items())

    def unlock(self) -> None:
        """Unlock all files, also for who inherited them, and leave the records; shared ones stay locked."""
        self._ours = False
        for file in self._files.values():
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _UNLOCK)

    def close(self) -> None:
        """Take our record away, unlock and close all files."""
        if self._ours:
            self.describe(self.left)
        self.unlock()
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def folder() -> Path:
    """The folder of the locks: $EVMPERF_LOCKS, /run/lock, or that of temporary files."""
    if own := os.environ.get("EVMPERF_LOCKS"):
        return Path(own)
    return _SYSTEM if os.access(_SYSTEM, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def held() -> list[HoldRecord]:
    """The records of the holders of all locks on this machine."""
    records: list[HoldRecord] = []
    for path in sorted(folder().glob("evmperf-*.lock")):
        with contextlib.suppress(OSError):
            file = os.open(path, _FLAGS & ~os.O_RDWR | os.O_NONBLOCK)  # it may be a pipe
            record = _record(file) if _is_locked(file) else None
            os.close(file)
            if record and record not in records:  # a board with several devices
                records.append(record)
    return records


def _path(name: str) -> Path:
    return folder() / f"evmperf-{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock"


def _open(path: Path) -> int:
    # In a shared folder the kernel refuses O_CREAT on another user's file
    # (fs.protected_regular), so try without first.
    try:
        while True:
            with contextlib.suppress(FileNotFoundError):
                return os.open(path, _FLAGS)
            with contextlib.suppress(FileExistsError):
                file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL)
                os.fchmod(file, 0o666)
                return file
    except OSError as error:
        raise LabError(f"{path}: cannot be opened: {error.strerror}") from None


def _lock(path: Path) -> int:
    while True:
        file = _open(path)
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK)
        except OSError:
            until = time.monotonic() + _WRITTEN_S
            while not (holder := _record(file)) and time.monotonic() < until:
                time.sleep(_WRITTEN_S / 20)
            os.close(file)
            raise Busy(holder) from None
        if _is_at(path, file):
            os.set_inheritable(file, True)
            return file
        os.close(file)  # deleted between opening and locking: it locks nothing


def _is_locked(file: int) -> bool:
    """Whether somebody else has a lock; the query takes none, which would block others."""
    asked = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _QUERY)
    return bool(struct.unpack_from("h", asked)[0] != fcntl.F_UNLCK)


def _is_at(path: Path, file: int) -> bool:
    """Whether a file is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False


def _record(file: int) -> HoldRecord | None:
    """The record in a file; None for anything else."""
    try:
        return _RECORD.decode(os.pread(file, _SIZE, 0))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
