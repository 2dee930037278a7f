"""The content of an image file: unpacked, whatever it is compressed with, sparse, with its hashes."""

import bz2
import contextlib
import errno
import hashlib
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from backports import zstd

from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError, one_line

_READ = 1 << 20
_PIECE = 1 << 24
"""Bytes that a step unpacks at most: a packed megabyte may say gigabytes."""

# The limit of memory is that of `zstd --ultra --long=31`; the window of usual files is 8 MiB.
_LONG: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: 31}

_FORMATS: dict[str, tuple[bytes, Callable[[], Any]]] = {
    "xz": (b"\xfd7zXZ\x00", lzma.LZMADecompressor),
    "zst": (b"\x28\xb5\x2f\xfd", lambda: zstd.ZstdDecompressor(options=_LONG)),
    "gz": (b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    "bz2": (b"BZh", bz2.BZ2Decompressor),
}
"""Of each compression what its files begin with, and what reads them."""
SUFFIXES = tuple(_FORMATS)
"""What compressed images are called: their last suffix."""


def kind(file: Path) -> str:
    """A file's compression (of SUFFIXES, or ""); raises UsageError if unreadable or falsely named."""
    try:
        with file.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    compression = of_bytes(head)
    named = file.suffix.removeprefix(".")
    if named in SUFFIXES and compression != named:
        raise UsageError(
            f"{file} is not compressed with {named}, although its name says so: "
            f"it begins with {head[:6]!r}; fetch it again"
        )
    return compression


def of_bytes(head: bytes) -> str:
    """How data that begins like this is compressed: one of SUFFIXES, "" for not at all."""
    return next((name for name, (magic, _) in _FORMATS.items() if head.startswith(magic)), "")


def stream(
    file: BinaryIO, compression: str, name: str, seen: Callable[[bytes], None] = lambda _piece: None
) -> Iterator[bytes]:
    """The decompressed content of an open file, consecutive streams as one; `seen` receives each compressed
    piece. Raises UsageError, with the image's `name`, for a damaged or truncated file.
    """
    if not compression:
        while data := file.read(_READ):
            seen(data)
            yield data
        return
    _, new = _FORMATS[compression]
    decoder, fresh = new(), True
    while data := file.read(_READ):
        seen(data)
        more = False
        while data or (more and not decoder.eof):
            if decoder.eof:
                decoder, fresh = new(), True
            if fresh and not (data := bytes(data).lstrip(b"\0")):
                break  # xz pads between streams, and tapes and block devices behind the last one
            try:
                piece, data, more = _step(decoder, data)
            except (lzma.LZMAError, zlib.error, zstd.ZstdError, OSError) as error:
                raise UsageError(f"{name} is damaged: {one_line(error)}; fetch it again") from None
            fresh = False
            if piece:
                yield piece
    if not decoder.eof:
        raise UsageError(f"{name} is cut short: its {compression} stream does not end; fetch it again")


def _step(decoder: Any, data: Any) -> tuple[bytes, Any, bool]:
    """The decoded piece, the bytes that are left, and whether the decoder has more."""
    piece = decoder.decompress(data, _PIECE)
    left = decoder.unused_data if decoder.eof else getattr(decoder, "unconsumed_tail", b"")
    return piece, left, len(piece) == _PIECE


BLOCK = 1 << 16
"""Size in bytes of the pieces that become holes if they are all zeros."""
_ZEROS = bytes(BLOCK)

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done."""


class Hashes(msgspec.Struct, frozen=True):
    """SHA-256 of an image file, SHA-256 of its content, and size of the content in bytes."""

    file: str
    content: str
    size: int


def check_room(error: OSError, folder: Path, what: str) -> None:
    """Raise LabError if a file could not be written for lack of space."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise LabError(
            f"there is no room in {folder} for {what}: clean up there, or point EVMPERF_CACHE at a "
            f"larger disk"
        ) from None


def unpack(file: Path, target: Path | None, progress: Progress = lambda _done, _whole: None) -> Hashes:
    """Hash a file and its content, written to `target` with holes; raises UsageError or LabError."""
    packed = kind(file)
    whole = file.stat().st_size
    of_file, of_content = hashlib.sha256(), hashlib.sha256()
    done = 0

    def seen(piece: bytes) -> None:
        nonlocal done
        done += len(piece)
        if packed:
            of_file.update(piece)
        progress(done, whole)

    try:
        with file.open("rb") as source, target.open("wb") if target else contextlib.nullcontext() as sink:
            size, rest = 0, b""
            for piece in stream(source, packed, str(file), seen):
                of_content.update(piece)
                size += len(piece)
                if size > limits.IMAGE_BYTES:
                    much = f"{limits.IMAGE_BYTES >> 30} GiB"
                    raise UsageError(f"{file} unpacks to more than {much}, the limit of an image")
                if sink:
                    rest = _write(sink.fileno(), rest + piece)
            if sink:
                os.write(sink.fileno(), rest)
                os.ftruncate(sink.fileno(), size)
    except OSError as error:
        if target:
            check_room(error, target.parent, f"the content of {file}")
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    content = of_content.hexdigest()
    return Hashes(file=of_file.hexdigest() if packed else content, content=content, size=size)


def _write(sink: int, data: bytes) -> bytes:
    """Write whole blocks, skipping zeros; returns what is left over."""
    end = len(data) - len(data) % BLOCK
    for start in range(0, end, BLOCK):
        block = data[start : start + BLOCK]
        if block == _ZEROS:
            os.lseek(sink, BLOCK, os.SEEK_CUR)
        else:
            os.write(sink, block)
    return data[end:]
