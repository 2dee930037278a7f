"""An image: a file, its hashes, its raw content, and what it says it is."""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.provision.content import SUFFIXES, Hashes
from evmperf.provision.identity import Identity


@dataclass(frozen=True)
class Image:
    """An image, ready to be written: `content` is its raw content, `source` what was asked for."""

    source: str
    file: Path
    content: Path
    hashes: Hashes
    identity: Identity
    name: str
    """What people call it: the name of the file, or of that on its server."""
    warnings: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Its name and origin, hashes and release."""
        hashes = {"sha256": self.hashes.file, "content_sha256": self.hashes.content}
        return {"name": self.name, "source": self.source, **hashes, "release": self.identity.release}


def expected_checksum(file: Path) -> str:
    """The SHA-256 of the image in a file beside it (`FILE.sha256`, `FILE.sha256sum`, `SHA256SUMS`,
    `sha256sums.txt`), or "". Raises UsageError for a FILE.sha256 without one.
    """
    for suffix in (".sha256", ".sha256sum"):
        beside = file.with_name(file.name + suffix)
        if beside.is_file():
            found = re.match(r"\s*([0-9a-fA-F]{64})\b", beside.read_text(errors="replace"))
            if not found:
                raise UsageError(f"{beside} has no SHA-256 in it: correct or remove it")
            return found[1].lower()
    for name in ("SHA256SUMS", "sha256sums.txt"):
        beside = file.with_name(name)
        if beside.is_file():
            for line in beside.read_text(errors="replace").splitlines():
                words = line.split()
                if len(words) == 2 and words[1].lstrip("*") == file.name:
                    return words[0].lower()
    return ""


def check_sum(file: Path, found: str, expected: str) -> None:
    """Raise UsageError if a file's SHA-256 is not the one that is expected ("": any)."""
    if expected and found != expected:
        raise UsageError(
            f"{file} has SHA-256 {found}, but {expected} is expected: fetch it again, "
            f"or correct the expected checksum"
        )


def assemble(source: str, file: Path, content: Path, hashes: Hashes, says: Identity, *, name: str) -> Image:
    """The image of these parts; raises UsageError for one that is cut short."""
    if says.end > hashes.size:
        raise UsageError(
            f"{file} is cut short: its partitions end at {says.end} bytes and its content at "
            f"{hashes.size}; fetch it again"
        )
    warnings = _map_warnings(file, content, hashes.size)
    return Image(source, file, content, hashes, says, name, warnings)


def check_fits(image: Image, board: Board) -> None:
    """Raise UsageError for an image that does not fit this board, before anything is switched or written."""
    says = image.identity
    machine = board.options.image.machine
    if machine and says.machine and says.machine != machine:
        raise UsageError(
            f"{image.name} is for the machine {says.machine}, and {board.file_name} says "
            f"image.machine: {machine}: give the image of this board"
        )
    if not says.uboot:
        raise UsageError(
            f"{image.name} has no boot loader (none of u-boot.img, u-boot.bin, tispl.bin on a FAT "
            f"partition): a board cannot start from it"
        )
    if not says.root:
        raise UsageError(f"{image.name} has no root file system with an os-release")
    silicon = board.options.image.silicon
    if silicon and says.silicon and says.silicon != silicon:
        others = f"; it has files for {', '.join(says.silicons)}" if says.silicons else ""
        raise UsageError(
            f"the tiboot3.bin of {image.name} is for {says.silicon} chips, and {board.file_name} "
            f"sets image.silicon: {silicon}{others}: put that file in its place in the image"
        )


@dataclass(frozen=True)
class BlockMap:
    """bmaptool's block map: first and last block of each range; may lack meaningful zeros."""

    size: int
    block: int
    ranges: tuple[tuple[int, int], ...]


def find_map(image: Path) -> Path | None:
    """The map beside an image: `X.wic.bmap` for `X.wic` and `X.wic.zst`."""
    names = [image.name]
    if image.suffix.removeprefix(".") in SUFFIXES:
        names.append(image.name.removesuffix(image.suffix))
    found = (image.with_name(f"{name}.bmap") for name in names)
    return next((file for file in found if file.is_file()), None)


def parse_map(text: str) -> BlockMap:
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
    return BlockMap(int(size), int(block), tuple(ranges))


def _map_warnings(image: Path, content: Path, size: int) -> tuple[str, ...]:
    """What is wrong with the map beside an image, as sentences; it is not needed for writing."""
    file = find_map(image)
    if file is None:
        return ()
    try:
        blocks = parse_map(file.read_text(errors="replace"))
    except (ValueError, OSError) as error:
        return (f"{file.name} is not a block map ({error}): it is not used",)
    if blocks.size != size:
        return (f"{file.name} is of an image of {blocks.size} bytes, this one has {size}: not used",)
    if lost := _lost(content, blocks):
        return (f"{file.name} leaves out {lost} bytes of the image that are not zeros: it is not used",)
    return ()


def _lost(content: Path, blocks: BlockMap) -> int:
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
