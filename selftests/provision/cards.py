"""Files that stand for cards, images to put on them, and both compared."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from evmperf.lab.provision import writer
from evmperf.lab.provision.ways import Host
from evmperf.lab.provision.writer import Content, Progress
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


def content_of(image: Path) -> Content:
    data = image.read_bytes()
    return Content(len(data), hashlib.sha256(data).hexdigest(), image.name)


def put(
    image: Path, card: Path, host: Host | None = None, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    content = content_of(image)
    source = writer.chunks_of(str(image), content.size)
    return (host or Host()).put(str(card), source, content, progress)


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


def mark(card: str) -> dict[str, Any] | None:
    """What the mark on a medium says of the write that was interrupted; None without a mark."""
    with Path(card).open("rb") as file:
        text = file.read(4096)
    if not text.startswith(writer.MARK):
        return None
    said: dict[str, Any] = json.loads(text.removeprefix(writer.MARK).split(b"\0")[0])
    return said
