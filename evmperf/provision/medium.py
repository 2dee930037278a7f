"""A medium: a card, an eMMC or a file that stands for one, read and written past every cache.

Nothing but Python's own library is imported: see `writer`. Annotations are not evaluated, as the
other host may have an older Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
from pathlib import Path

CHUNK = 1 << 20
"""Bytes that are read, compared and written at a time."""
HEAD = 4096
"""Bytes at the beginning that hold the mark: the partition table is in them."""

_PIECE = 1 << 16
"""Of a chunk, what lies between the first and the last differing piece is written."""
_BLKFLSBUF, _BLKZEROOUT = 0x1261, 0x127F
_PUNCH_HOLE = 0x03  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_libc = ctypes.CDLL(None, use_errno=True)


class MediumError(Exception):
    """A medium that cannot be made equal to the image; `kind` is lab or usage."""

    def __init__(self, text: str, kind: str = "lab") -> None:
        super().__init__(text)
        self.kind = kind


class Buffer:
    """One chunk of memory, aligned as direct I/O needs it."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, CHUNK)
        self.view = memoryview(self._map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))


class Medium:
    """A block device, or a file that stands for one. Raises MediumError with a remedy."""

    def __init__(self, path: str, *, write: bool = True) -> None:
        self.path = path
        self._have, self._zeros = Buffer(), Buffer()
        try:
            # O_EXCL on a block device fails while the device or a partition of it is mounted.
            block = stat.S_ISBLK(Path(path).stat().st_mode)
            flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_EXCL if block else 0)
            self._handle = os.open(path, flags | os.O_CLOEXEC)
        except OSError as error:
            raise MediumError(_why_not_opened(path, error)) from None
        self._block = block
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise MediumError(f"{path} is being written by another process: wait for it, or end it") from None
        self.size = os.lseek(self._handle, 0, os.SEEK_END)
        if self.size == 0:
            os.close(self._handle)
            raise MediumError(f"{path} has no medium: check the card and the card switch")
        self._direct = True
        self._set_direct(True)

    def close(self) -> None:
        """Let go of the medium."""
        os.close(self._handle)

    def _set_direct(self, on: bool) -> None:
        if on == self._direct and on is False:
            return
        flags = fcntl.fcntl(self._handle, fcntl.F_GETFL)
        flags = flags | os.O_DIRECT if on else flags & ~os.O_DIRECT
        try:
            fcntl.fcntl(self._handle, fcntl.F_SETFL, flags)
            self._direct = on
        except OSError:
            self._direct = False  # a file system without: its cache is dropped instead

    def read(self, offset: int, length: int) -> memoryview:
        """Read past the caches into this object's one buffer."""
        aligned = length % HEAD == 0
        if not aligned and self._direct:
            self._set_direct(False)
        if not self._direct:
            os.posix_fadvise(self._handle, offset, length, os.POSIX_FADV_DONTNEED)
        try:
            done = 0
            while done < length:
                view = self._have.view[done:length]
                got = os.preadv(self._handle, [view], offset + done)
                if got == 0:
                    raise MediumError(
                        f"{self.path} ends at byte {offset + done}, before the end of the image"
                    )
                done += got
        except OSError as error:
            raise self._failed("read", offset, error) from None
        finally:
            if not aligned:
                self._set_direct(True)
        return self._have.view[:length]

    def write(self, offset: int, data: memoryview | None, length: int) -> None:
        """Write bytes, or zeros where `data` is None."""
        if data is None and self._zero(offset, length):
            return
        data = self._zeros.view[:length] if data is None else data[:length]
        aligned = length % HEAD == 0 and offset % HEAD == 0
        if not aligned:
            self._set_direct(False)
        try:
            done = 0
            while done < length:
                done += os.pwrite(self._handle, data[done:], offset + done)
        except OSError as error:
            raise self._failed("written", offset, error) from None
        finally:
            if not aligned:
                self._set_direct(True)

    def _zero(self, offset: int, length: int) -> bool:
        """Let the medium make its own zeros; False where it cannot."""
        if self._block:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._handle, _BLKZEROOUT, struct.pack("QQ", offset, length))
                return True
            return False
        arguments = ctypes.c_int(_PUNCH_HOLE), ctypes.c_long(offset), ctypes.c_long(length)
        return bool(_libc.fallocate(self._handle, *arguments) == 0)

    def flush(self) -> None:
        """Bring everything to the medium, and forget what memory still holds of it."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise self._failed("written", 0, error) from None
        if self._block:
            with contextlib.suppress(OSError):  # for root only; direct reads need it not
                fcntl.ioctl(self._handle, _BLKFLSBUF)
        os.posix_fadvise(self._handle, 0, 0, os.POSIX_FADV_DONTNEED)

    def difference(self, offset: int, want: memoryview | None, length: int) -> tuple[int, int] | None:
        """The first and the end of a chunk's different bytes, to the next _PIECE; None if all are equal."""
        have = self.read(offset, length)
        view = self._zeros.view if want is None else want
        here, there = _address(have), _address(view)
        if _libc.memcmp(ctypes.c_void_p(here), ctypes.c_void_p(there), ctypes.c_size_t(length)) == 0:
            return None
        pieces = [
            start
            for start in range(0, length, _PIECE)
            if have[start : start + _PIECE].tobytes() != view[start : min(start + _PIECE, length)]
        ]
        return pieces[0], min(pieces[-1] + _PIECE, length)

    def first_difference(self, offset: int, want: memoryview | None, length: int) -> int:
        """The medium's first byte that differs, in a chunk of which `difference` said so."""
        have = self._have.view[:length].tobytes()
        view = (self._zeros.view if want is None else want)[:length].tobytes()
        return offset + first_other(have, view)

    def _failed(self, what: str, offset: int, error: OSError) -> MediumError:
        if error.errno == errno.EIO:
            return MediumError(
                f"{self.path} cannot be {what} at byte {offset} (I/O error): "
                f"the medium is dying or has bad contact; replace it"
            )
        if error.errno == errno.EPERM:
            return MediumError(f"{self.path} is write-protected: move the card's lock")
        return MediumError(f"{self.path} cannot be {what} at byte {offset}: {error.strerror}")


def first_other(have: bytes, want: bytes) -> int:
    """The place of the first byte in which two texts of the same length differ."""
    pairs = enumerate(zip(have, want, strict=True))
    return next(at for at, (found, wanted) in pairs if found != wanted)


def _address(view: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def _why_not_opened(path: str, error: OSError) -> str:
    remedies = {
        errno.EBUSY: "is in use here (mounted?): unmount its partitions",
        errno.EACCES: "may not be written by this user: add the user to the group of the device "
        "(disk), or remove the write protection",
        errno.EPERM: "may not be written: it is write-protected",
        errno.EROFS: "is write-protected: move the card's lock",
        errno.ENOENT: "is missing: check the card, and the switch's cable to this host",
        errno.ENOMEDIUM: "has no medium: put a card in",
    }
    return f"{path} {remedies.get(error.errno or 0, f'cannot be opened: {error.strerror}')}"
