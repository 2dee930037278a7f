"""Files that stand for cards, images to put on them, and both compared."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evmperf.lab.provision import writer
from selftests.provision.imagelab import MIB

USED = 0xA5
"""Every byte of a card that has been used."""
SHELL = ["sh", "-c", 'exec sh -c "$*"', "_"]
"""What ssh does with its words, without a network."""


def an_image(file: Path) -> Path:
    """5 MiB and a half sector less than whole pages, with holes; its first and last are data."""
    size = 5 * MIB + 1536
    draw = random.Random(7)
    with file.open("wb") as disk:
        disk.truncate(size)
        for start, length in ((0, 5000), (MIB + 70_000, 300), (3 * MIB, MIB), (size - 900, 900)):
            disk.seek(start)
            disk.write(draw.randbytes(length))
    return file


def used_card(file: Path, size: int) -> Path:
    file.write_bytes(bytes([USED]) * size)
    return file


class Image:
    """What a way needs of an image."""

    def __init__(self, file: Path) -> None:
        self.content = self.file = file
        self.name = file.name
        data = file.read_bytes()
        self.size, self.content_sha256 = len(data), hashlib.sha256(data).hexdigest()


def put(
    image: Path,
    card: Path,
    begins: Callable[[], None] = lambda: None,
    prefix: Sequence[str] = (),
    spoil: Callable[[], None] | None = None,
) -> None:
    """Write an image as `evmperf image show --write`; `spoil` is called before it is read back."""
    there: Any = Image(image)

    def copy(content: str, path: str) -> None:
        writer._dd(content, path)
        spoil()

    writer.write(str(card), there, begins, copy if spoil else None, prefix)


def assert_equal(card: Path, image: Path) -> None:
    """The image, and behind it what the card held before."""
    data, want = card.read_bytes(), image.read_bytes()
    assert data[: len(want)] == want
    assert set(data[len(want) :]) <= {USED}


def flip(card: Path, at: int) -> None:
    with card.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))
