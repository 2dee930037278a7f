"""Making a medium equal to an image, byte for byte, and proving it.

What differs is written, then all of it is read back past every cache and compared. Zeros of the
image are zeros on the medium, whatever was there. The first block is written last: until then a
mark stands there, with which no board boots, and by which an interrupted write is known.

Nothing but Python's own library and `medium` is imported: the same text runs where the medium is,
on another host of the lab, which need not have evmperf (see `remote`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

from evmperf.provision.medium import CHUNK, HEAD, Buffer, Medium, MediumError, first_other

MARK = b"evmperf: this medium was being written and is not whole\n"

_STREAK, _BLIND = 8, 256
"""So many chunks that differ in a row, and comparing is not worth reading for as many more; nor for
twice as many after that, if the next one differs too, up to the second number.
"""
FRAME = struct.Struct(">BI")

Source = Callable[[], Iterator["memoryview | None"]]
"""Gives the image from its beginning, in chunks; None for a chunk of zeros."""
Progress = Callable[[str, int, int], None]
"""Told what is being done (write, verify), and how many bytes of how many are: none at first, when
nothing stands against writing any more, and nothing is written yet.
"""


class Content(NamedTuple):
    """What is to be on the medium: bytes, their SHA-256, and what messages call the image."""

    size: int
    sha256: str
    name: str


def put(
    path: str, source: Source, content: Content, progress: Progress = lambda _what, _done, _whole: None
) -> dict[str, Any]:
    """Make the medium equal to the image of `source`; returns the bytes `written` and `repeated`, and
    `already` for an equal medium. Raises MediumError; a medium being written then carries the mark.
    """
    medium = Medium(path)
    try:
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
    finally:
        medium.close()


class _Writer:
    """One medium being made equal to one image."""

    def __init__(self, medium: Medium, source: Source, content: Content, progress: Progress) -> None:
        self._medium, self._source, self._size = medium, source, content.size
        self._sha256, self._progress = content.sha256, progress
        self._mark = bytearray(HEAD)
        said = json.dumps({"image": content.name, "sha256": content.sha256})
        text = MARK + said.encode() + b"\n"
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
        written = 0
        # Apart for data and for zeros: a new release's data differs where its zeros do not.
        streak, blind = [0, 0], [0, 0]
        self._progress("write", 0, self._size)
        with ThreadPoolExecutor(1) as pool:
            digest = _Digest(pool)
            for offset, chunk, length in self._chunks():
                digest.update(chunk, length)
                kind = int(chunk is None)
                if offset == 0:
                    written += self._begin(chunk, length)
                elif blind[kind]:
                    blind[kind] -= 1
                    written += self._write(offset, chunk, 0, length)
                elif span := self._medium.difference(offset, chunk, length):
                    written += self._write(offset, chunk, *span)
                    streak[kind] = streak[kind] + 1 if span[1] - span[0] == length else 0
                    if streak[kind] >= _STREAK:
                        blind[kind] = min(streak[kind], _BLIND)
                        streak[kind] += blind[kind]
                else:
                    streak[kind] = 0
                self._progress("write", offset + length, self._size)
            if self._sha256 and digest.hex() != self._sha256:
                raise MediumError(
                    "the image changed while it was written: its SHA-256 is different now", "usage"
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
                    return HEAD + first_other(have[HEAD:], want[HEAD:])
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
            raise MediumError(f"{self._medium.path} does not keep its first block: replace the medium")


class _Digest:
    """The SHA-256 of chunks, computed in parallel: a chunk must stay until the next `update`."""

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
