"""The raw content of an image on disk: sparse, with its hashes, made in one pass."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError
from evmperf.provision import compression

BLOCK = 1 << 16
"""Bytes in whose pieces zeros become holes."""
_ZEROS = bytes(BLOCK)

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done."""


@dataclass(frozen=True)
class Hashes:
    """What a pass over an image file found: SHA-256 of the file, SHA-256 and bytes of content."""

    file: str
    content: str
    size: int


def unpack(file: Path, target: Path | None, progress: Progress = lambda _done, _whole: None) -> Hashes:
    """Hash an image file and its content; write the content to `target`, zeros as holes.

    Without a target the content is only hashed. Raises UsageError for a file that cannot be read,
    is damaged or cut short, LabError when there is no room; then there is no `target`.
    """
    packed = compression.kind(file)
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
        sink = target.open("wb") if target else None
        try:
            size = 0
            with file.open("rb") as source:
                rest = b""
                for piece in compression.stream(source, packed, str(file), seen):
                    of_content.update(piece)
                    size += len(piece)
                    if size > limits.IMAGE_BYTES:
                        much = f"{limits.IMAGE_BYTES >> 30} GiB"
                        raise UsageError(f"{file} unpacks to more than {much}: no image does")
                    if sink:
                        rest = _write(sink.fileno(), rest + piece)
            if sink:
                sink.flush()
                os.write(sink.fileno(), rest)
                os.ftruncate(sink.fileno(), size)
        finally:
            if sink:
                sink.close()
    except OSError as error:
        if target:
            target.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LabError(
                f"there is no room in {target.parent if target else ''} for the content of {file}: "
                f"clean up there, or point EVMPERF_CACHE at a larger disk"
            ) from None
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except UsageError:
        if target:
            target.unlink(missing_ok=True)
        raise
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
