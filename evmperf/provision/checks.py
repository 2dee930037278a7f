"""What an image must be for a board, looked at before anything is switched or written."""

from __future__ import annotations

from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.provision.image import Image


def check(image: Image, board: Board) -> None:
    """Raise UsageError for an image that this board would not boot, or should not."""
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
