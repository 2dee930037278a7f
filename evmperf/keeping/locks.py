"""Locks on this machine for boards without a coordinator: a file a device, for all its users.

Who has locked says so in the file. The kernel opens the lock when the holder ends, however it does.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError

_SYSTEM = Path("/run/lock")
"""Where Debian lets everybody keep locks (Filesystem Hierarchy Standard 3.0, 5.9)."""


class Busy(Exception):
    """Somebody has the lock; `holder` is what they wrote into it."""

    def __init__(self, holder: Mapping[str, Any]) -> None:
        super().__init__("the lock is taken")
        self.holder = holder


class Locks:
    """The locks of one board; raises Busy or LabError and holds none of them then."""

    def __init__(self, devices: Sequence[str], holder: Mapping[str, Any]) -> None:
        self._files: list[int] = []
        try:
            for device in sorted(devices):
                self._files.append(_lock(_path(device), holder))
        except BaseException:
            self.release()
            raise

    def describe(self, holder: Mapping[str, Any]) -> None:
        """Write anew who holds them."""
        for file in self._files:
            _write(file, holder)

    def release(self) -> None:
        """Open them."""
        for file in self._files:
            with contextlib.suppress(OSError):
                os.ftruncate(file, 0)
            os.close(file)
        self._files.clear()


def folder() -> Path:
    """Where the locks are: $EVMPERF_LOCKS, /run/lock, or the folder for temporary files."""
    if own := os.environ.get("EVMPERF_LOCKS"):
        return Path(own)
    return _SYSTEM if os.access(_SYSTEM, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _path(device: str) -> Path:
    return folder() / f"evmperf-{hashlib.sha256(device.encode()).hexdigest()[:16]}.lock"


def _lock(path: Path, holder: Mapping[str, Any]) -> int:
    try:
        file = _open(path)
    except OSError as error:
        raise LabError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write(file, holder)
    except BlockingIOError:
        said = os.pread(file, 65536, 0)
        os.close(file)
        try:
            raise Busy(json.loads(said))
        except ValueError:  # it has just been taken
            raise Busy({}) from None
    except OSError as error:
        os.close(file)
        raise LabError(f"{path}: cannot be written: {error.strerror}") from None
    return file


def _open(path: Path) -> int:
    # In a folder for everybody the kernel lets nobody open another's file with O_CREAT
    # (fs.protected_regular), so try without first; and never through a link.
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


def _write(file: int, holder: Mapping[str, Any]) -> None:
    text = json.dumps(holder).encode()
    os.ftruncate(file, 0)
    os.pwrite(file, text, 0)


def held() -> list[dict[str, Any]]:
    """What the holders of all locks of this machine say of themselves."""
    records = []
    for path in sorted(folder().glob("evmperf-*.lock")):
        with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                record = json.loads(file.read())
                if record not in records:  # a board with several devices
                    records.append(record)
    return records


def identity() -> str:
    """Which folder of locks this is, among all that hosts and containers of one name have."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    status = folder().stat()
    return f"{boot}-{status.st_dev:x}-{status.st_ino:x}"
