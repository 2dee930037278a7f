"""An image: a file, its hashes, its raw content, and what it says it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.provision import bmap
from evmperf.provision.content import Hashes
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


def expected_checksum(file: Path) -> str:
    """The SHA-256 that a file beside the image names for it, "" if there is none.

    `FILE.sha256`, `FILE.sha256sum`, `SHA256SUMS` and `sha256sums.txt`, in the form of sha256sum.
    Raises UsageError for a FILE.sha256 that has no checksum in it.
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
            f"or correct what names the checksum"
        )


def assemble(source: str, file: Path, content: Path, hashes: Hashes, says: Identity, *, name: str) -> Image:
    """The image of these parts; raises UsageError for one that is cut short."""
    if says.end > hashes.size:
        raise UsageError(
            f"{file} is cut short: its partitions end at {says.end} bytes and its content at "
            f"{hashes.size}; fetch it again"
        )
    warnings = bmap.warnings(file, content, hashes.size)
    return Image(source, file, content, hashes, says, name, warnings)


def check_fits(image: Image, board: Board) -> None:
    """Raise UsageError for an image that this board would not boot, or should not.

    Called before anything is switched or written.
    """
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
            f"partition): a board would not start from it"
        )
    if not says.root:
        raise UsageError(f"{image.name} has no root file system with an os-release")
    silicon = board.options.image.silicon
    if silicon and says.silicon and says.silicon != silicon:
        others = f"; it has files for {', '.join(says.silicons)}" if says.silicons else ""
        raise UsageError(
            f"the tiboot3.bin of {image.name} is for {says.silicon} chips, and {board.file_name} "
            f"says image.silicon: {silicon}{others}: put that file in its place in the image"
        )
