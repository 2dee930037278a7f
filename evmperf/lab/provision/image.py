"""An image: a file, its hashes, its raw content, and what it says it is."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evmperf.boards.board import Board
from evmperf.lab.provision.content import SUFFIXES, Hashes
from evmperf.lab.provision.identity import Identity
from evmperf.model.concealing import concealed
from evmperf.model.errors import UsageError


@dataclass(frozen=True)
class DiskImage:
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
        return {
            "name": self.name,
            "source": concealed(self.source),
            **hashes,
            "release": self.identity.release,
        }


def expected_checksum(file: Path) -> str:
    """The SHA-256 of the image in a file beside it (`FILE.sha256`, `FILE.sha256sum`, `SHA256SUMS`,
    `sha256sums.txt`), or "". Raises UsageError for a FILE.sha256 without one.
    """
    for name in (f"{file.name}.sha256", f"{file.name}.sha256sum", "SHA256SUMS", "sha256sums.txt"):
        beside, own = file.with_name(name), name.startswith(file.name)
        lines = beside.read_text(errors="replace").splitlines() if beside.is_file() else []
        for found, *names in (words for line in lines if (words := line.split())):
            right = own or [word.lstrip("*") for word in names] == [file.name]
            if right and re.fullmatch("[0-9a-fA-F]{64}", found):
                return found.lower()
        if own and beside.is_file():
            raise UsageError(f"{beside} has no SHA-256 in it: correct or remove it")
    return ""


def check_sum(file: Path, found: str, expected: str) -> None:
    """Raise UsageError if a file's SHA-256 is not the one that is expected ("": any)."""
    if expected and found != expected:
        raise UsageError(
            f"{file} has SHA-256 {found}, but {expected} is expected: fetch it again, "
            f"or correct the expected checksum"
        )


def checked(image: DiskImage) -> DiskImage:
    """The image with its warnings; raises UsageError for one that is cut short."""
    end, size = image.identity.end, image.hashes.size
    if end > size:
        raise UsageError(
            f"{image.file} is cut short: its partitions end at {end} bytes and its content at {size}; "
            f"fetch it again"
        )
    return replace(image, warnings=_map_warnings(image.file, image.content, size))


def check_fits(image: DiskImage, board: Board) -> None:
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


def _map_warnings(image: Path, content: Path, size: int) -> tuple[str, ...]:
    """What is wrong with the block map of bmaptool beside an image (`X.wic.bmap` for `X.wic` and `X.wic.zst`,
    format 1 and 2), as sentences; it is not needed for writing.
    """
    packed = image.suffix.removeprefix(".") in SUFFIXES
    names = [image.name, image.stem] if packed else [image.name]
    file = next((f for name in names if (f := image.with_name(f"{name}.bmap")).is_file()), None)
    if file is None:
        return ()
    try:
        root = ET.fromstring(file.read_text(errors="replace"))
        mapped, block = (int(root.findtext(word, "")) for word in ("ImageSize", "BlockSize"))
        ranges = [
            [int(number) * block for number in (entry.text or "").split("-")]
            for entry in root.iterfind("BlockMap/Range")
        ]
    except (ET.ParseError, ValueError, OSError):
        return (f"{file.name} is not a block map: it is not used",)
    if mapped != size:
        return (f"{file.name} is of an image of {mapped} bytes, this one has {size}: not used",)
    if lost := _lost(content, [(numbers[0], numbers[-1] + block) for numbers in ranges], size):
        return (f"{file.name} leaves out {lost} bytes of the image that are not zeros: it is not used",)
    return ()


def _lost(content: Path, ranges: Sequence[tuple[int, int]], size: int) -> int:
    """Bytes that are not zeros outside of the ranges (begin and end in bytes)."""
    lost, at = 0, 0
    with content.open("rb") as file:
        for begin, end in (*ranges, (size, size)):
            while at < min(begin, size):
                file.seek(at)
                piece = file.read(min(1 << 20, begin - at))
                lost += len(piece) - piece.count(0)
                at += len(piece)
            at = max(at, end)
    return lost
