"""An image: a file, its hashes, its raw content, and what it says it is."""

import re
from dataclasses import dataclass
from pathlib import Path

from evmperf.boards.board import Board
from evmperf.lab.provision.content import Hashes
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

    def facts(self) -> dict[str, object]:
        """Its name and origin, hashes, release, machine and disk."""
        return {
            "name": self.name,
            "source": concealed(self.source),
            "sha256": self.hashes.file,
            "content_sha256": self.hashes.content,
            "release": self.identity.release,
            "machine": self.identity.machine,
            "disk": self.identity.disk,
        }


def expected_checksum(file: Path) -> str:
    """The SHA-256 of the image in a file beside it (`FILE.sha256`, `FILE.sha256sum`, `SHA256SUMS`,
    `sha256sums.txt`), or "". Raises UsageError for a FILE.sha256 without one.
    """
    for name in (f"{file.name}.sha256", f"{file.name}.sha256sum", "SHA256SUMS", "sha256sums.txt"):
        beside, own = file.with_name(name), name.startswith(file.name)
        lines = beside.read_text(errors="replace").splitlines() if beside.is_file() else []
        for checksum, *names in (words for line in lines if (words := line.split())):
            right = own or [word.lstrip("*") for word in names] == [file.name]
            if right and re.fullmatch("[0-9a-fA-F]{64}", checksum):
                return checksum.lower()
        if own and beside.is_file():
            raise UsageError(f"{beside} has no SHA-256 in it: correct or remove it")
    return ""


def check_sum(file: Path, actual: str, expected: str) -> None:
    """Raise UsageError if a file's SHA-256 is not the one that is expected ("": any)."""
    if expected and actual != expected:
        raise UsageError(
            f"{file} has SHA-256 {actual}, but {expected} is expected: fetch it again, "
            f"or correct the expected checksum"
        )


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
        raise UsageError(
            f"the tiboot3.bin of {image.name} is for {says.silicon} chips, and {board.file_name} "
            f"sets image.silicon: {silicon}: put that file in its place in the image"
        )
