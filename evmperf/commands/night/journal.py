"""The events of a night on disk, line by line: a killed night continues from them."""

import fcntl
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evmperf.measure.runs.spool import append_lines, leave_out
from evmperf.model.ended import Ending
from evmperf.model.errors import LabError, UsageError

_FILE = "journal.jsonl"


class _Event(msgspec.Struct):
    event: str
    at: float


class _Begun(_Event):
    plan: str
    until: float


class _Started(_Event):
    job: str
    place: str
    run: str


class _Submitted(_Event):
    job: str
    page: str


class _Measured(_Started):
    ending: Ending
    sentence: str


_EVENTS = {"begun": _Begun, "started": _Started, "submitted": _Submitted, "measured": _Measured}
"""The events that restore a night's progress."""


class Journal:
    """The events of one night, in a folder of its own below the results; raises LabError for the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / _FILE).open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder}: this night is going on in another process") from None
        except OSError as error:
            raise LabError(f"{folder}: cannot be written: {error.strerror}") from None

    @property
    def id(self) -> str:
        """The night's name among all nights."""
        return self.folder.name

    def note(self, event: str, **what: object) -> None:
        """Append an event and wait until it is on the disk."""
        line = json.dumps({"event": event, "at": time.time(), **what}).encode() + b"\n"
        with self._lock:
            try:
                append_lines(self._file, line)
            except OSError as error:
                raise LabError(f"{self.folder}: cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of a night, oldest first, without truncated lines; damaged lines are reported."""
    file = folder / _FILE
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            event = msgspec.json.decode(line)
            msgspec.convert(event, _EVENTS.get(event["event"], _Event))
        except (msgspec.DecodeError, TypeError, KeyError, ValueError, RecursionError) as error:
            leave_out(f"{file} line {number}: is damaged: {error}")
        else:
            yield event


def open_night(results: Path, name: str, plan: str, *, fresh: bool) -> Journal:
    """The night of that name that has not ended and measures that plan, or a new one; raises UsageError when
    it goes on in another process.
    """
    if not fresh:
        for folder in sorted(results.glob(f"night-{name}-*"), reverse=True):
            events = list(read(folder))
            if any(event["event"] == "ended" for event in events):
                break
            begun = next((event for event in events if event["event"] == "begun"), None)
            if begun and begun["plan"] == plan and begun["until"] > time.time():
                return Journal(folder)
    return Journal(results / f"night-{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
