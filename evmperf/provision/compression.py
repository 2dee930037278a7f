"""The content of an image file, whatever it is compressed with, as a stream of bytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from evmperf.model.errors import UsageError

_READ = 1 << 20
_PIECE = 1 << 24
"""Bytes that a step unpacks at most: a packed megabyte may say gigabytes."""
_ZSTD_READ = 1 << 11
"""Of zstd, which knows no such limit, bytes a step takes: each four of them may say 128 KiB."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"\x1f\x8b", "gz"),
    (b"BZh", "bz2"),
)
SUFFIXES = tuple(name for _, name in _MAGIC)
"""What compressed images are called: their last suffix."""

_DECODERS: dict[str, Callable[[], Any]] = {
    "xz": lzma.LZMADecompressor,
    # The limit of memory is that of `zstd --ultra --long=31`; the window of usual files is 8 MiB.
    "zst": lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
    "gz": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
}


def kind(file: Path) -> str:
    """How a file is compressed by its first bytes: one of SUFFIXES, "" for not at all.

    Raises UsageError for a file that cannot be read, or whose name says that it is compressed
    when its bytes say that it is not (a login page that a download brought instead).
    """
    try:
        with file.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    found = of_bytes(head)
    named = file.suffix.removeprefix(".")
    if named in SUFFIXES and found != named:
        raise UsageError(
            f"{file} is not compressed with {named}, as its name says: "
            f"it begins with {head[:6]!r}; fetch it again"
        )
    return found


def of_bytes(head: bytes) -> str:
    """How data that begins like this is compressed: one of SUFFIXES, "" for not at all."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "")


def stream(
    file: BinaryIO, compression: str, name: str, seen: Callable[[bytes], None] = lambda _piece: None
) -> Iterator[bytes]:
    """The decompressed content of an open file in pieces of any length.

    `seen` is given each piece of the file as it is read. Several streams one after the other are
    one content, as they are for the tools. Raises UsageError, naming the image `name`, for a file
    that is damaged or cut short: xz, gz and bz2 tell the first by their checksums.
    """
    if not compression:
        while data := file.read(_READ):
            seen(data)
            yield data
        return
    decoder = _DECODERS[compression]()
    fresh = True
    while data := file.read(_READ):
        seen(data)
        more = False
        while data or (more and not decoder.eof):
            if decoder.eof:
                decoder, fresh = _DECODERS[compression](), True
            if fresh and not (data := bytes(data).lstrip(b"\0")):
                break  # xz pads between streams, and tapes and block devices behind the last one
            try:
                piece, data, more = _step(decoder, compression, data)
            except (lzma.LZMAError, zlib.error, zstandard.ZstdError, OSError) as error:
                raise UsageError(
                    f"{name} is damaged: {' '.join(str(error).split())}; fetch it again"
                ) from None
            fresh = False
            if piece:
                yield piece
    if not decoder.eof:
        raise UsageError(f"{name} is cut short: its {compression} stream does not end; fetch it again")


def _step(decoder: Any, compression: str, data: Any) -> tuple[bytes, Any, bool]:
    """What a decoder makes of the next bytes, what is left of those, and whether it has more."""
    if compression == "zst":
        view = memoryview(data)
        piece, rest = decoder.decompress(view[:_ZSTD_READ]), view[_ZSTD_READ:]
        return piece, decoder.unused_data + bytes(rest) if decoder.eof else rest, False
    piece = decoder.decompress(data, _PIECE)
    left = decoder.unused_data if decoder.eof else getattr(decoder, "unconsumed_tail", b"")
    return piece, left, len(piece) == _PIECE
