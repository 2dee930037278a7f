"""What this lab host knows of the image on a board: what was written last, and what booted."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, replace

from evmperf.boards.board import Board
from evmperf.model.errors import LabError
from evmperf.virtual import paths

SCHEMA = 1


@dataclass(frozen=True)
class Entry:
    """An image by its name, where it came from, and the SHA-256 of file and content."""

    name: str
    source: str
    file: str
    sha256: str
    content: str


@dataclass(frozen=True)
class Record:
    """`on_board` is what was written last, `writing` whether that write came to its end, `good` the
    last image that booted and was identified.
    """

    on_board: Entry | None = None
    writing: bool = False
    good: Entry | None = None


class Book:
    """The record of one board, kept from session to session."""

    def __init__(self, board: Board) -> None:
        # A place is one board; without a coordinator a board's file is.
        place = os.environ.get("LG_PLACE") or str(board.file.resolve())
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", place).strip("_")[-120:]
        self.file = paths.state_dir() / "provision" / f"{name}.json"

    def read(self) -> Record:
        """What is known; an empty record where nothing is, or another version wrote it."""
        try:
            data = json.loads(self.file.read_text())
            if data.pop("schema") != SCHEMA:
                return Record()
            entries = {k: Entry(**data[k]) if data[k] else None for k in ("on_board", "good")}
            return Record(**{**data, **entries})
        except (OSError, ValueError, TypeError, KeyError):
            return Record()

    def begins(self, entry: Entry) -> None:
        """An image is going to be written."""
        self._write(replace(self.read(), on_board=entry, writing=True))

    def written(self) -> None:
        """The write came to its end, and was read back."""
        self._write(replace(self.read(), writing=False))

    def booted(self) -> None:
        """What is on the board booted and is what it should be."""
        known = self.read()
        self._write(replace(known, good=known.on_board))

    def _write(self, record: Record) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            new = self.file.with_suffix(".new")
            with new.open("w") as file:
                json.dump({"schema": SCHEMA, **asdict(record)}, file)
                file.flush()
                os.fsync(file.fileno())
            new.rename(self.file)
        except OSError as error:
            raise LabError(f"{self.file} cannot be written: {error.strerror}") from None
