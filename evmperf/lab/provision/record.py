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

SCHEMA = 2


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
    that booted and was identified, with `medium` and `mounts` of that time (see `running.Running`).
    `starts` counts how often this host has switched the board on since.
    """

    on_board: InstallationEntry | None = None
    writing: bool = False
    good: InstallationEntry | None = None
    medium: str = ""
    mounts: int | None = None
    starts: int = 0
    schema: int = SCHEMA

    def may_hold(self, content: str) -> bool:
        """Whether the image of this SHA-256 was written last, wholly, and was seen to boot."""
        last = self.on_board
        return last is not None and not self.writing and last.content == content and last == self.good

    def why_other(self, medium: str, mounts: int | None) -> str:
        """Why this medium is not as this host left it, "" if it is."""
        if medium != self.medium:
            return f"its medium is {medium or 'none'}, not {self.medium or 'none'}"
        most = (self.mounts or 0) + self.starts
        if mounts in ([None] if self.mounts is None else range(self.mounts, most + 1)):
            return ""
        return (
            f"the mount count of its root is {mounts}, not {self.mounts} to {most}: somebody else booted the "
            f"board or used its medium"
        )


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

    def starts(self) -> None:
        """The board is going to be switched on."""
        state = self.read()
        if state.on_board:
            self._write(replace(state, starts=state.starts + 1))

    def booted(self, medium: str, mounts: int | None) -> None:
        """The image on the board booted and was identified, with this medium and number of mounts."""
        state = self.read()
        self._write(replace(state, good=state.on_board, medium=medium, mounts=mounts, starts=0))

    def _write(self, record: InstallationRecord) -> None:
        write_whole(self.file, msgspec.json.encode(record))


def with_images(sides: Sequence[Sequence[str]], board: Board) -> list[list[str]]:
    """The words of these variations. If one puts an image on the board, each of them must name its
    image, or it would run the image of another. Raises UsageError if the board's image is unknown.
    """
    images = [variation.parse(side).image for side in sides]
    if not any(images):
        return [list(side) for side in sides]
    good = Book(board).read().good
    if good is None and not all(images):
        without = variation.parse(sides[images.index("")])
        raise UsageError(
            f"{without}: the image on {board.name} is unknown: write image:FILE for each "
            f"side, or write an image with `evmperf image install` first"
        )
    return [
        list(side) if image or good is None else [f"image:{good.file}", *side]
        for side, image in zip(sides, images, strict=True)
    ]
