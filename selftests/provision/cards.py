"""Files that stand for cards, images to put on them, and both compared."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evmperf.lab.provision import writer

MIB = 1 << 20
USED = 0xA5
"""Every byte of a card that has been used."""
SHELL = ["sh", "-c", 'exec sh -c "$*"', "_"]
"""What ssh does with its words, without a network."""


class Image:
    """What a way needs of an image: random data at its start and end, and zeros between."""

    def __init__(self, file: Path, size: int = 5 * MIB + 1536) -> None:
        draw = random.Random(size)
        self.data = draw.randbytes(size // 2) + bytes(size // 4)
        self.data += draw.randbytes(size - len(self.data))
        file.write_bytes(self.data)
        self.content = self.file = file
        self.name = file.name
        self.size, self.content_sha256 = size, hashlib.sha256(self.data).hexdigest()


def used_card(file: Path, size: int) -> Path:
    file.write_bytes(bytes([USED]) * size)
    return file


def put(
    image: Any,
    card: Path,
    begins: Callable[[], None] = lambda: None,
    prefix: Sequence[str] = (),
    spoil: Callable[[], None] | None = None,
) -> None:
    """Write an image as `evmperf image show --write`; `spoil` is called before it is read back."""

    def copy(content: str, path: str) -> None:
        writer._dd(content, path)
        spoil()

    writer.write(str(card), image, begins, copy if spoil else None, prefix)


def assert_equal(card: Path, image: Image) -> None:
    """The image, and behind it what the card held before."""
    data = card.read_bytes()
    assert data[: image.size] == image.data
    assert set(data[image.size :]) <= {USED}
