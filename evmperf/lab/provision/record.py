"""What this lab host knows of the image on a board: what was written last, and what booted."""

import os
import re
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from evmperf.boards.board import Board
from evmperf.measure.runs import folders
from evmperf.measure.runs.spool import write_whole

SCHEMA = 3


_Stored = TypeVar("_Stored")


def stored(file: Path, kind: type[_Stored]) -> _Stored | None:
    """What a JSON file holds; None if it is missing, damaged or of another version."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):
        return None


class InstallationRecord(msgspec.Struct, frozen=True):
    """The image on the board: its name and the SHA-256 of its content; `writing` while its write has not
    ended, `booted` once it was seen to run, with `medium` and `mounts` of that time (see `running.Running`).
    `starts` counts how often this host has switched the board on since.
    """

    name: str = ""
    content: str = ""
    writing: bool = False
    booted: bool = False
    medium: str = ""
    mounts: int | None = None
    starts: int = 0
    schema: int = SCHEMA

    def may_hold(self, content: str) -> bool:
        """Whether the image of this SHA-256 was written last, wholly, and was seen to boot."""
        return self.content == content and self.booted and not self.writing

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

    def begins(self, name: str, content: str) -> None:
        """An image is going to be written."""
        self._write(InstallationRecord(name, content, writing=True))

    def written(self) -> None:
        """The write came to its end, and was read back."""
        self._write(replace(self.read(), writing=False))

    def starts(self) -> None:
        """The board is going to be switched on."""
        state = self.read()
        if state.name:
            self._write(replace(state, starts=state.starts + 1))

    def booted(self, medium: str, mounts: int | None) -> None:
        """The image on the board booted and was identified, with this medium and number of mounts."""
        self._write(replace(self.read(), booted=True, medium=medium, mounts=mounts, starts=0))

    def _write(self, record: InstallationRecord) -> None:
        write_whole(self.file, msgspec.json.encode(record))
