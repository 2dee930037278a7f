"""An image: a file, its hashes, its raw content, and what it says it is."""

from dataclasses import dataclass
from pathlib import Path

from evmperf.boards.board import Board
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.model.concealing import concealed
from evmperf.model.errors import UsageError


@dataclass(frozen=True)
class DiskImage:
    """An image, ready to be written: `source` is what was asked for, `content` the raw content, with its
    `size` in bytes and its `content_sha256`; `sha256` is the file's.
    """

    source: str
    file: Path
    content: Path
    size: int
    sha256: str
    content_sha256: str
    identity: SystemIdentity
    name: str
    """What people call it: the name of the file, or of that on its server."""

    def facts(self) -> dict[str, object]:
        """Its name and origin, hashes, release and machine."""
        return {
            "name": self.name,
            "source": concealed(self.source),
            "sha256": self.sha256,
            "content_sha256": self.content_sha256,
            "release": self.identity.release,
            "machine": self.identity.machine,
        }


def check_fits(image: DiskImage, board: Board) -> None:
    """Raise UsageError for an image that does not fit this board, before anything is switched or written."""
    says = image.identity
    machine = board.options.image.machine
    if machine and says.machine and says.machine != machine:
        raise UsageError(
            f"{image.name} is for the machine {says.machine}, and {board.file_name} says "
            f"image.machine: {machine}: give the image of this board"
        )
    if not (says.uboot or board.options.boot.flow):
        raise UsageError(
            f"{image.name} has no boot loader (u-boot.img or u-boot.bin on a FAT partition): "
            f"a board cannot start from it"
        )
    if not says.root:
        raise UsageError(f"{image.name} has no root file system with an os-release")
