"""Making a medium equal to an image, byte for byte, and proving it.

What differs is written, then all of it is read back past every cache and compared. Zeros of the
image are zeros on the medium, whatever was there. The first block is written last: until then a
mark stands there, without which no board boots, and by which an interrupted write is known.

Nothing but Python's own library is imported: the same text runs where the medium is, on another
host of the lab, which need not have evmperf (see `remote`).
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
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

CHUNK = 1 << 20
"""Bytes that are read, compared and written at a time."""
HEAD = 4096
"""Bytes at the beginning that hold the mark: the partition table is in them."""
MARK = b"evmperf: this medium was being written and is not whole\n"

_PIECE = 1 << 16
"""Of a chunk, what lies between the first and the last differing piece is written."""
_STREAK = 8
"""So many chunks that differ in a row, and comparing is not worth reading for as many more."""
_BLKFLSBUF, _BLKZEROOUT = 0x1261, 0x127F
_PUNCH_HOLE = 0x03  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
FRAME = struct.Struct(">BI")
_libc = ctypes.CDLL(None, use_errno=True)

Source = Callable[[], Iterator["memoryview | None"]]
"""Gives the image from its beginning, in chunks; None for a chunk of zeros."""
Progress = Callable[[str, int, int], None]
"""Told what is being done (write, verify), and how many bytes of how many are."""


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
            block = stat.S_ISBLK(os.stat(path).st_mode)
            flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_EXCL if block else 0)
            self._handle = os.open(path, flags | os.O_CLOEXEC)
        except OSError as error:
            raise MediumError(_why_not_opened(path, error)) from None
        self._block = block
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise MediumError(
                f"{path} is being written by somebody else: wait for them, or end them"
            ) from None
        self.size = os.lseek(self._handle, 0, os.SEEK_END)
        if self.size == 0:
            os.close(self._handle)
            raise MediumError(
                f"{path} has no medium: is the card in, and does the switch reach it?"
            )
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
                        f"{self.path} ends at byte {offset + done}, before the image does"
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

    def difference(
        self, offset: int, want: memoryview | None, length: int
    ) -> tuple[int, int] | None:
        """First and behind-last byte within a chunk that differ from what is there, None for none.

        To the next _PIECE: it is about what to write.
        """
        have = self.read(offset, length)
        view = self._zeros.view if want is None else want
        here, there = _address(have), _address(view)
        if (
            _libc.memcmp(ctypes.c_void_p(here), ctypes.c_void_p(there), ctypes.c_size_t(length))
            == 0
        ):
            return None
        pieces = [
            start
            for start in range(0, length, _PIECE)
            if have[start : start + _PIECE].tobytes() != view[start : min(start + _PIECE, length)]
        ]
        return pieces[0], min(pieces[-1] + _PIECE, length)

    def first_difference(self, offset: int, want: memoryview | None, length: int) -> int:
        """The exact byte of the medium that differs first, after `difference` said that one does."""
        have = self._have.view[:length].tobytes()
        view = (self._zeros.view if want is None else want)[:length].tobytes()
        pairs = enumerate(zip(have, view, strict=True))
        return offset + next(at for at, (found, wanted) in pairs if found != wanted)

    def _failed(self, what: str, offset: int, error: OSError) -> MediumError:
        if error.errno == errno.EIO:
            return MediumError(
                f"{self.path} cannot be {what} at byte {offset} (I/O error): "
                f"the medium is dying or has bad contact; replace it"
            )
        if error.errno == errno.EPERM:
            return MediumError(f"{self.path} is write-protected: move the card's lock")
        return MediumError(f"{self.path} cannot be {what} at byte {offset}: {error.strerror}")


def _address(view: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def _why_not_opened(path: str, error: OSError) -> str:
    remedies = {
        errno.EBUSY: "is in use here (mounted?): unmount its partitions",
        errno.EACCES: "may not be written by this user: add the user to the group of the device "
        "(disk), or remove the write protection",
        errno.EPERM: "may not be written: it is write-protected",
        errno.EROFS: "is write-protected: move the card's lock",
        errno.ENOENT: "is not there: does the switch reach this host, and is a card in it?",
        errno.ENOMEDIUM: "has no medium: put a card in",
    }
    return f"{path} {remedies.get(error.errno or 0, f'cannot be opened: {error.strerror}')}"


def mark(path: str) -> dict[str, Any] | None:
    """What the mark on a medium says of the write that was interrupted; None without a mark."""
    medium = Medium(path, write=False)
    try:
        text = medium.read(0, min(HEAD, medium.size)).tobytes()
    finally:
        medium.close()
    if not text.startswith(MARK):
        return None
    try:
        said = json.loads(text.removeprefix(MARK).split(b"\0")[0])
    except ValueError:
        said = {}
    return said if isinstance(said, dict) else {}


def put(
    path: str,
    source: Source,
    size: int,
    sha256: str,
    name: str = "",
    progress: Progress = lambda _what, _done, _whole: None,
) -> dict[str, Any]:
    """Make the medium equal to the image of `size` bytes with this SHA-256.

    Returns `written` (bytes), `repeated` (bytes that had to be written a second time) and
    `already` (whether nothing had to be written). Raises MediumError; a medium that had to be
    written then carries the mark.
    """
    medium = Medium(path)
    try:
        if size > medium.size:
            raise MediumError(
                f"the image has {size} bytes and {path} only {medium.size}: use a larger medium",
                "usage",
            )
        writer = _Writer(medium, source, size, sha256, name, progress)
        written = writer.write()
        repeated = 0
        # Nothing written: every byte was read past the caches, and was the image's.
        if written and (at := writer.verify()) is not None:
            repeated = writer.write()
            if (again := writer.verify()) is not None:
                raise MediumError(
                    f"{path} does not keep what is written to it: byte {again} reads back as "
                    f"another (byte {at} at the first try); replace the medium"
                )
        if written:
            writer.finish()
        return {"written": written, "repeated": repeated, "already": not written}
    finally:
        medium.close()


class _Writer:
    """One medium being made equal to one image."""

    def __init__(
        self, medium: Medium, source: Source, size: int, sha256: str, name: str, progress: Progress
    ) -> None:
        self._medium, self._source, self._size = medium, source, size
        self._sha256, self._progress = sha256, progress
        self._mark = bytearray(HEAD)
        text = MARK + json.dumps({"image": name, "sha256": sha256}).encode() + b"\n"
        self._mark[: len(text)] = text
        self._marked = False
        self._head = Buffer()
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
        written, streak, blind = 0, 0, 0
        with ThreadPoolExecutor(1) as pool:
            digest = _Digest(pool)
            for offset, chunk, length in self._chunks():
                digest.update(chunk, length)
                if offset == 0:
                    written += self._begin(chunk, length)
                elif blind:
                    blind -= 1
                    written += self._write(offset, chunk, 0, length)
                elif span := self._medium.difference(offset, chunk, length):
                    written += self._write(offset, chunk, *span)
                    whole = span[1] - span[0] == length
                    streak = streak + 1 if whole else 0
                    blind = _STREAK if streak >= _STREAK else 0
                else:
                    streak = 0
                self._progress("write", offset + length, self._size)
            if self._sha256 and digest.hex() != self._sha256:
                raise MediumError(
                    "the image changed while it was written: its content has another SHA-256 now",
                    "usage",
                )
        if written:
            self._medium.flush()
        return written

    def _begin(self, chunk: memoryview | None, length: int) -> int:
        """Handle the first chunk, whose first block is written last."""
        self._head.view[:HEAD] = bytes(HEAD) if chunk is None else chunk[:HEAD]
        span = self._medium.difference(0, chunk, length)
        if span is None:
            return 0
        if length <= HEAD:
            self._set_mark()
            return length
        first = max(span[0], HEAD)
        self._set_mark()
        return self._write(0, chunk, first, max(span[1], first)) + (HEAD if span[0] < HEAD else 0)

    def _write(self, offset: int, chunk: memoryview | None, first: int, last: int) -> int:
        self._set_mark()
        if last > first:
            data = None if chunk is None else chunk[first:last]
            self._medium.write(offset + first, data, last - first)
        return last - first

    def _set_mark(self) -> None:
        if self._marked:
            return
        length = min(HEAD, self._size)
        buffer = Buffer()
        buffer.view[:HEAD] = self._mark
        self._medium.write(0, buffer.view[:length], length)
        self._medium.flush()
        self._marked = True

    def verify(self) -> int | None:
        """Read all of it back; the first byte that differs, None if there is none."""
        self._medium.flush()
        for offset, chunk, length in self._chunks():
            if offset == 0:
                # Here the mark still stands; `finish` sees to this block.
                have = self._medium.read(0, length).tobytes()
                want = bytes(length) if chunk is None else chunk[:length].tobytes()
                if have[HEAD:] != want[HEAD:]:
                    pairs = enumerate(zip(have[HEAD:], want[HEAD:], strict=True))
                    return HEAD + next(at for at, (found, wanted) in pairs if found != wanted)
            elif self._medium.difference(offset, chunk, length):
                return self._medium.first_difference(offset, chunk, length)
            self._progress("verify", offset + length, self._size)
        return None

    def finish(self) -> None:
        """Write the first block, which makes the medium whole, and see that it is there."""
        length = min(HEAD, self._size)
        want = self._head.view[:length]
        self._medium.write(0, want, length)
        self._medium.flush()
        if self._medium.read(0, length).tobytes() != want.tobytes():
            raise MediumError(
                f"{self._medium.path} does not keep its first block: replace the medium"
            )


class _Digest:
    """The SHA-256 of the chunks, computed beside the reading and writing.

    A chunk must stay as it is until the next `update`.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool, self._hash = pool, hashlib.sha256()
        self._pending: Future[None] | None = None
        self._zeros = bytes(CHUNK)

    def update(self, chunk: memoryview | None, length: int) -> None:
        if self._pending:
            self._pending.result()
        data = memoryview(self._zeros)[:length] if chunk is None else chunk[:length]
        self._pending = self._pool.submit(self._hash.update, data)

    def hex(self) -> str:
        if self._pending:
            self._pending.result()
        return self._hash.hexdigest()


def chunks_of(path: str, size: int) -> Source:
    """A file with raw content as a source; its holes are chunks of zeros without being read.

    Two buffers take turns, so that one chunk can still be hashed while the next one is read.
    """

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
    """Do what one line of JSON on `orders` asks for; the image follows there whenever it is needed.

    Answers are lines of JSON: `need`, `progress`, `result` or `error`. A chunk of the image is a
    byte (0: zeros, 1: data), four bytes of length, and its data.
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
        if order["do"] == "mark":
            tell(result=mark(order["path"]))
        else:
            size, sha256, name = order["size"], order["sha256"], order["name"]
            tell(result=put(order["path"], source, size, sha256, name, progress))
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
