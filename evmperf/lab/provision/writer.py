"""Making a medium (a card, an eMMC, or a file that stands for one) equal to an image, and proving it.

What differs is written, then all of it is read back past every cache and compared. Zeros of the
image are zeros on the medium, whatever was there. The first block is written last: until then a
mark stands there, with which no board boots, and by which an interrupted write is known.

Nothing but Python's own library is imported: the same text runs where the medium is, on another host of
the lab, which need not have evmperf (see `ways`). Annotations are not evaluated, as it may have an older
Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

CHUNK = 1 << 20
"""Bytes that are read, compared and written at a time."""
HEAD = 4096
"""Bytes at the beginning that hold the mark: the partition table is in them."""

_PIECE = 1 << 16
"""Of a chunk, what lies between the first and the last differing piece is written."""
_BLKFLSBUF, _BLKZEROOUT = 0x1261, 0x127F
_PUNCH_HOLE = 0x03  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_NOT_OPENED = {
    errno.EBUSY: "is in use here (mounted?): unmount its partitions",
    errno.EACCES: "may not be written by this user: add the user to the group of the device "
    "(disk), or remove the write protection",
    errno.EPERM: "may not be written: it is write-protected",
    errno.EROFS: "is write-protected: move the card's lock",
    errno.ENOENT: "is missing: check the card, and the switch's cable to this host",
    errno.ENOMEDIUM: "has no medium: put a card in",
}
_libc = ctypes.CDLL(None, use_errno=True)
MARK = b"evmperf: this medium was being written and is not whole\n"

_STREAK, _BLIND = 8, 256
"""So many chunks that differ in a row, and comparing is not worth reading for as many more; nor for
twice as many after that, if the next one differs too, up to the second number.
"""
FRAME = struct.Struct(">BI")

Source = Callable[[], Iterator["memoryview | None"]]
"""Gives the image from its beginning, in chunks; None for a chunk of zeros."""
Progress = Callable[[str, int, int], None]
"""Told what is being done (fetch, read, write, verify), and how many bytes of how many are: when no
obstacle to writing is left, and before the first byte, none.
"""


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

    def __init__(self, path: str) -> None:
        self.path = path
        self._have, self._zeros = Buffer(), Buffer()
        try:
            # O_EXCL on a block device fails while the device or a partition of it is mounted.
            block = stat.S_ISBLK(Path(path).stat().st_mode)
            flags = os.O_RDWR | (os.O_EXCL if block else 0)
            self._handle = os.open(path, flags | os.O_CLOEXEC)
        except OSError as error:
            reason = _NOT_OPENED.get(error.errno or 0, f"cannot be opened: {error.strerror}")
            raise MediumError(f"{path} {reason}") from None
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
        self._direct = False

    def close(self) -> None:
        """Let go of the medium."""
        os.close(self._handle)

    @contextlib.contextmanager
    def _working(self, what: str, offset: int, length: int) -> Iterator[None]:
        """Read or write past the caches where the place allows it."""
        direct = offset % HEAD == length % HEAD == 0
        if direct != self._direct:
            flags = fcntl.fcntl(self._handle, fcntl.F_GETFL)
            flags = flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT
            with contextlib.suppress(OSError):  # a file system without: its cache is dropped instead
                fcntl.fcntl(self._handle, fcntl.F_SETFL, flags)
                self._direct = direct
        try:
            yield
        except OSError as error:
            raise self._failed(what, offset, error) from None

    def read(self, offset: int, length: int) -> memoryview:
        """Read past the caches into this object's one buffer."""
        done = 0
        with self._working("read", offset, length):
            if not self._direct:
                os.posix_fadvise(self._handle, offset, length, os.POSIX_FADV_DONTNEED)
            while done < length:
                got = os.preadv(self._handle, [self._have.view[done:length]], offset + done)
                if got == 0:
                    raise MediumError(
                        f"{self.path} ends at byte {offset + done}, before the end of the image"
                    )
                done += got
        return self._have.view[:length]

    def write(self, offset: int, data: memoryview | None, length: int) -> None:
        """Write bytes, or zeros where `data` is None."""
        if data is None and self._zero(offset, length):
            return
        data = self._zeros.view[:length] if data is None else data[:length]
        done = 0
        with self._working("written", offset, length):
            while done < length:
                done += os.pwrite(self._handle, data[done:], offset + done)

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
        """A chunk's first different byte, and the end of the last _PIECE that differs; None for none."""
        have, view = self.read(offset, length), (self._zeros.view if want is None else want)[:length]
        here, view_address = (ctypes.addressof(ctypes.c_char.from_buffer(side)) for side in (have, view))
        if _libc.memcmp(*map(ctypes.c_void_p, (here, view_address)), ctypes.c_size_t(length)) == 0:
            return None
        pieces = [slice(start, start + _PIECE) for start in range(0, length, _PIECE)]
        different = [piece for piece in pieces if have[piece].tobytes() != view[piece]]
        pairs = enumerate(zip(have[different[0]], view[different[0]], strict=True))
        at = next(at for at, (byte, view_byte) in pairs if byte != view_byte)
        return different[0].start + at, min(different[-1].stop, length)

    def _failed(self, what: str, offset: int, error: OSError) -> MediumError:
        if error.errno == errno.EIO:
            return MediumError(
                f"{self.path} cannot be {what} at byte {offset} (I/O error): "
                f"the medium is dying or has bad contact; replace it"
            )
        if error.errno == errno.EPERM:
            return MediumError(f"{self.path} is write-protected: move the card's lock")
        return MediumError(f"{self.path} cannot be {what} at byte {offset}: {error.strerror}")


class Content(NamedTuple):
    """What is to be on the medium: bytes, their SHA-256, and what messages call the image."""

    size: int
    sha256: str
    name: str


def put(
    path: str, source: Source, content: Content, progress: Progress = lambda _what, _done, _whole: None
) -> dict[str, object]:
    """Make the medium equal to the image of `source`; returns the bytes `written` and `repeated`, and
    `already` for an equal medium. Raises MediumError; a medium being written then carries the mark.
    """
    with contextlib.closing(Medium(path)) as medium:
        if content.size > medium.size:
            raise MediumError(
                f"the image has {content.size} bytes and {path} only {medium.size}: use a larger medium",
                "usage",
            )
        writer = _Writer(medium, source, content, progress)
        written = writer.write()
        repeated = 0
        # Nothing written: every byte was read past the caches, and was the image's.
        if written and (at := writer.verify()) is not None:
            repeated = writer.write()
            if (again := writer.verify()) is not None:
                raise MediumError(
                    f"{path} does not keep its data: byte {again} reads back as "
                    f"another (byte {at} at the first try); replace the medium"
                )
        if written:
            writer.finish()
        return {"written": written, "repeated": repeated, "already": not written}


class _Writer:
    """One medium being made equal to one image."""

    def __init__(self, medium: Medium, source: Source, content: Content, progress: Progress) -> None:
        self._medium, self._source, self._size = medium, source, content.size
        self._sha256, self._progress = content.sha256, progress
        about = json.dumps({"image": content.name, "sha256": content.sha256})
        self._mark = (MARK + about.encode() + b"\n").ljust(HEAD, b"\0")
        self._marked = False
        self._head = b""
        """What belongs in the first block at the end."""

    def _chunks(self) -> Iterator[tuple[int, memoryview | None, int]]:
        offset = 0
        for chunk in self._source():
            length = min(CHUNK, self._size - offset)
            yield offset, chunk, length
            offset += length
        if offset != self._size:
            raise MediumError(f"the image ended after {offset} of {self._size} bytes")

    def write(self) -> int:
        """Write what differs, but the first block; returns the bytes that were written."""
        written = 0
        # Apart for data and for zeros: a new release's data differs where its zeros do not.
        streak, blind = [0, 0], [0, 0]
        digest, hashed, zeros = hashlib.sha256(), None, bytes(CHUNK)
        self._progress("write", 0, self._size)
        with ThreadPoolExecutor(1) as pool:
            for offset, chunk, length in self._chunks():
                if hashed:
                    hashed.result()  # a chunk lasts until the next but one
                hashed = pool.submit(digest.update, (zeros if chunk is None else chunk)[:length])
                kind = int(chunk is None)
                if offset == 0:
                    self._head = bytes((zeros if chunk is None else chunk)[:HEAD])
                if blind[kind]:
                    blind[kind] -= 1
                    written += self._write(offset, chunk, 0, length)
                elif span := self._medium.difference(offset, chunk, length):
                    first = span[0] - span[0] % HEAD
                    written += self._write(offset, chunk, first, span[1])
                    streak[kind] = streak[kind] + 1 if span[1] - first == length else 0
                    if streak[kind] >= _STREAK:
                        blind[kind] = min(streak[kind], _BLIND)
                        streak[kind] += blind[kind]
                else:
                    streak[kind] = 0
                self._progress("write", offset + length, self._size)
        if self._sha256 and digest.hexdigest() != self._sha256:
            raise MediumError("the image changed while it was written: its SHA-256 is different now", "usage")
        if written:
            self._medium.flush()
        return written

    def _write(self, offset: int, chunk: memoryview | None, first: int, last: int) -> int:
        """Write a part of a chunk, without the first block; returns its length."""
        if not self._marked:
            self._begin_with(self._mark)
            self._marked = True
        begin = max(first, HEAD - offset)
        if last > begin:
            self._medium.write(offset + begin, None if chunk is None else chunk[begin:last], last - begin)
        return last - first

    def _begin_with(self, block: bytes) -> memoryview:
        """Write the first block; returns what was written."""
        buffer, length = Buffer(), min(HEAD, self._size)
        buffer.view[:length] = block[:length]
        self._medium.write(0, buffer.view, length)
        self._medium.flush()
        return buffer.view[:length]

    def verify(self) -> int | None:
        """Read all of it back; the first byte that differs, None if there is none."""
        self._medium.flush()
        for offset, chunk, length in self._chunks():
            want = chunk
            if offset == 0:  # the mark still stands there
                want = Buffer().view
                if chunk is not None:
                    want[:] = chunk
                want[:HEAD] = self._mark
            if span := self._medium.difference(offset, want, length):
                return offset + span[0]
            self._progress("verify", offset + length, self._size)
        return None

    def finish(self) -> None:
        """Write the first block, which makes the medium whole, and see that it is there."""
        want = self._begin_with(self._head)
        if self._medium.read(0, len(want)) != want:
            raise MediumError(f"{self._medium.path} does not keep its first block: replace the medium")


def chunks_of(path: str, size: int) -> Source:
    """A file as a source, holes as zeros; two buffers take turns: one is hashed, one is read."""

    def source() -> Iterator[memoryview | None]:
        buffers = Buffer(), Buffer()
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for number, offset in enumerate(range(0, size, CHUNK)):
                length = min(CHUNK, size - offset)
                if _is_hole(handle, offset, length):
                    yield None
                    continue
                view = buffers[number % 2].view
                done = 0
                while done < length:
                    got = os.preadv(handle, [view[done:length]], offset + done)
                    if got == 0:
                        return
                    done += got
                yield view
        finally:
            os.close(handle)

    return source


def _is_hole(handle: int, offset: int, length: int) -> bool:
    try:
        return os.lseek(handle, offset, os.SEEK_DATA) >= offset + length
    except OSError as error:
        return error.errno == errno.ENXIO  # nothing but a hole up to the end


def serve(orders: BinaryIO, answers: BinaryIO) -> int:
    """Carry out the line of JSON on `orders`, which the image follows: per chunk a byte (0: zeros, 1:
    data), four bytes of length, the data. Answers are lines of JSON: `need`, `progress`, `result`, `error`.
    """

    def tell(**answer: object) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    def source() -> Iterator[memoryview | None]:
        tell(need="image")
        buffers = Buffer(), Buffer()
        for number in range(-(-order["size"] // CHUNK)):
            kind, length = FRAME.unpack(_exactly(orders, bytearray(FRAME.size)))
            if kind:
                _exactly(orders, buffers[number % 2].view[:length])
            yield buffers[number % 2].view if kind else None

    def progress(what: str, done: int, whole: int) -> None:
        tell(progress=[what, done, whole])

    order = json.loads(orders.readline())
    try:
        content = Content(order["size"], order["sha256"], order["name"])
        tell(result=put(order["path"], source, content, progress))
    except MediumError as error:
        tell(error=str(error), kind=error.kind)
    return 0


def _exactly(file: BinaryIO, into: Any) -> Any:
    view, done = memoryview(into), 0
    while done < len(view):
        got = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not got:
            raise MediumError("the connection to this host was cut while the image was sent")
        done += got
    return into


if __name__ == "__main__":
    sys.exit(serve(sys.stdin.buffer, sys.stdout.buffer))
