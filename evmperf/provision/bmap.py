"""Block maps: what bmaptool would write of an image. A hint, and one that is often wrong.

A map is made from a file's holes. One that was made after a decompression lacks blocks of zeros
that mean something, and a copy by it leaves there what the card held before.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from evmperf.provision.compression import SUFFIXES


@dataclass(frozen=True)
class Map:
    """The blocks of a map: `ranges` are first and last block, both within."""

    size: int
    block: int
    ranges: tuple[tuple[int, int], ...]


def find(image: Path) -> Path | None:
    """The map beside an image: `X.wic.bmap` for `X.wic` and `X.wic.zst`."""
    names = [image.name]
    if image.suffix.removeprefix(".") in SUFFIXES:
        names.append(image.name.removesuffix(image.suffix))
    found = (image.with_name(f"{name}.bmap") for name in names)
    return next((file for file in found if file.is_file()), None)


def parse(text: str) -> Map:
    """Read a map (bmap format 1 and 2); raises ValueError for anything else."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(str(error)) from None
    size, block, ranges = root.findtext("ImageSize"), root.findtext("BlockSize"), []
    if root.tag != "bmap" or size is None or block is None:
        raise ValueError("no block map")
    for entry in root.iterfind("BlockMap/Range"):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", entry.text or "")
        if not found:
            raise ValueError(f"a range of blocks {entry.text!r}")
        ranges.append((int(found[1]), int(found[2] or found[1])))
    return Map(int(size), int(block), tuple(ranges))


def warnings(image: Path, content: Path, size: int) -> tuple[str, ...]:
    """What is wrong with the map beside an image, as sentences; it is not needed for writing."""
    file = find(image)
    if file is None:
        return ()
    try:
        blocks = parse(file.read_text(errors="replace"))
    except (ValueError, OSError) as error:
        return (f"{file.name} is no block map ({error}): it is not used",)
    if blocks.size != size:
        return (f"{file.name} is of an image of {blocks.size} bytes, this one has {size}: not used",)
    if lost := _lost(content, blocks):
        return (f"{file.name} leaves out {lost} bytes of the image that are not zeros: it is not used",)
    return ()


def _lost(content: Path, blocks: Map) -> int:
    """Bytes that the map leaves out though the image has data there."""
    lost, at = 0, 0
    with content.open("rb") as file:
        for first, last in (*blocks.ranges, (-(-blocks.size // blocks.block), 0)):
            while at < min(first * blocks.block, blocks.size):
                file.seek(at)
                piece = file.read(min(1 << 20, first * blocks.block - at))
                lost += len(piece) - piece.count(0)
                at += len(piece)
            at = max(at, (last + 1) * blocks.block)
    return lost
