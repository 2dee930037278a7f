"""What this lab host knows of the image on a board: what was written last, and what booted."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from evmperf.boards import variation
from evmperf.boards.board import Board
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import UsageError

SCHEMA = 3


_Stored = TypeVar("_Stored")


def stored(file: Path, kind: type[_Stored]) -> _Stored | None:
    """What a JSON file holds; None if it is missing, damaged or of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):
        return None


class InstallationEntry(msgspec.Struct, frozen=True):
    """An image by its name, where it came from, and the SHA-256 of file and content."""

    name: str
    source: str
    file: str
    sha256: str
    content: str


class InstallationRecord(msgspec.Struct, frozen=True):
    """`on_board` was written last, `writing` while that write has not ended; `good` is the last image
    that booted and was identified, with the serial number of its `medium`.
    """

    on_board: InstallationEntry | None = None
    writing: bool = False
    good: InstallationEntry | None = None
    medium: str = ""
    schema: int = SCHEMA

    def may_hold(self, content: str) -> bool:
        """Whether the image of this SHA-256 was written last, wholly, and was seen to boot."""
        last = self.on_board
        return last is not None and not self.writing and last.content == content and last == self.good


class Book:
    """The record of one board, kept from session to session."""

    def __init__(self, board: Board) -> None:
        # A place is one board; without a coordinator a board's file is.
        place = os.environ.get("LG_PLACE") or str(board.file.resolve())
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", place).strip("_")[-120:]
        self.file = folders.state_dir() / "provision" / f"{name}.json"

    def read(self) -> InstallationRecord:
        """What is known; an empty record where nothing is, or another version wrote it."""
        record = stored(self.file, InstallationRecord)
        return record if record and record.schema == SCHEMA else InstallationRecord()

    def begins(self, entry: InstallationEntry) -> None:
        """An image is going to be written."""
        self._write(InstallationRecord(on_board=entry, writing=True, good=self.read().good))

    def written(self) -> None:
        """The write came to its end, and was read back."""
        self._write(replace(self.read(), writing=False))

    def booted(self, medium: str) -> None:
        """The image on the board booted and was identified, on this medium."""
        state = self.read()
        self._write(replace(state, good=state.on_board, medium=medium))

    def _write(self, record: InstallationRecord) -> None:
        write_whole(self.file, msgspec.json.encode(record))


def with_images(sides: Sequence[Sequence[str]], board: Board) -> list[list[str]]:
    """The words of these variations. If one puts an image on the board, each of them must name its
    image, or it would run the image of another. Raises UsageError if the board's image is unknown.
    """
    images = [variation.parse(side).provisioned.get("image") for side in sides]
    if not any(images):
        return [list(side) for side in sides]
    good = Book(board).read().good
    if good is None and not all(images):
        without = variation.parse(sides[images.index(None)])
        raise UsageError(
            f"{without}: the image on {board.name} is unknown: write image:FILE for each "
            f"side, or write an image with `evmperf image install` first"
        )
    return [
        list(side) if image or good is None else [f"image:{good.file}", *side]
        for side, image in zip(sides, images, strict=True)
    ]
