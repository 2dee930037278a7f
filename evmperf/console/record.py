"""The console as a record: every byte with the time it arrived.

File format `evmperf-console/1` (console.log): a header line, then one line per record:

    MONOTONIC WALL KIND LITERAL

MONOTONIC is CLOCK_MONOTONIC in seconds with nanoseconds, WALL the UTC time, KIND is `<` for bytes
from the board, `>` for bytes sent to it, `#` for an event of the lab (power, connection), and
LITERAL a Python bytes literal. A line cut short by a crash is the last one and is ignored.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from evmperf.model.errors import LabError

HEADER = b"evmperf-console/1\n"
POWER_ON = "power on"
POWER_OFF = "power off"

_KEEP_BYTES = 16 << 20
"""Bytes of one boot kept in memory; what is older stays in the file only."""


@dataclass(frozen=True)
class Record:
    """Some bytes, or an event, and when: `mono_ns` CLOCK_MONOTONIC, `wall_ns` since the epoch."""

    mono_ns: int
    wall_ns: int
    kind: str
    data: bytes

    def line(self) -> bytes:
        """This record as a line of console.log."""
        wall = datetime.fromtimestamp(self.wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        seconds, nanoseconds = divmod(self.mono_ns, 1_000_000_000)
        return f"{seconds}.{nanoseconds:09d} {wall} {self.kind} {self.data!r}\n".encode()


class History:
    """What the console said since the last power-on, and the file that all of it goes to.

    Fed by the thread that reads the console, read by others; every method may be called from any
    thread. A file that cannot be written does not disturb the reading: the first such error is
    kept and raised by `check`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[Record] = []
        self._bytes = 0
        self._written = 0
        self._file: BinaryIO | None = None
        self._error: OSError | None = None

    def open(self, path: Path) -> None:
        """Write everything from now on to `path` as well."""
        with self._lock:
            self._file = path.open("ab", buffering=0)
            self._written = self._file.tell()
            if self._written == 0:
                self._write(HEADER)

    def close(self) -> None:
        """Stop writing to the file."""
        with self._lock:
            if self._file:
                self._file.close()
            self._file = None

    def check(self) -> None:
        """Raise LabError if the console's record could not be written."""
        with self._lock:
            error, self._error = self._error, None
        if error:
            raise LabError(
                f"the console's record cannot be written ({error.strerror}): free some space "
                f"or name another folder with --results=FOLDER"
            ) from error

    def feed(self, data: bytes, mono_ns: int, *, kind: str = "<") -> None:
        """Keep bytes that arrived (or were sent) at `mono_ns`."""
        # The wall clock is derived so that both stamps are of the same instant.
        wall_ns = time.time_ns() - (time.monotonic_ns() - mono_ns)
        self._keep(Record(mono_ns, wall_ns, kind, data))

    def event(self, text: str, mono_ns: int | None = None) -> None:
        """Keep an event of the lab; a power-on starts the record in memory anew."""
        if text == POWER_ON:
            with self._lock:
                self._records.clear()
                self._bytes = 0
        self.feed(text.encode(), time.monotonic_ns() if mono_ns is None else mono_ns, kind="#")

    def records(self) -> list[Record]:
        """Everything since the last power-on."""
        with self._lock:
            return list(self._records)

    def tail(self, lines: int) -> list[str]:
        """The last lines that the board printed, control characters replaced."""
        data = b"".join(r.data for r in self.records()[-20_000:] if r.kind == "<")
        text = data.decode("utf-8", "replace").replace("\r", "")
        return ["".join(c if c.isprintable() else "?" for c in line) for line in text.split("\n")][
            -lines:
        ]

    def _keep(self, record: Record) -> None:
        with self._lock:
            self._records.append(record)
            self._bytes += len(record.data)
            if self._bytes > _KEEP_BYTES:
                half = len(self._records) // 2
                self._bytes -= sum(len(r.data) for r in self._records[:half])
                del self._records[:half]
            if self._file:
                self._write(record.line())

    def _write(self, line: bytes) -> None:
        """Append a line to the file, or nothing of it."""
        assert self._file
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._error = self._error or error
            with contextlib.suppress(OSError):
                self._file.truncate(self._written)
        else:
            self._written += len(line)


def read(path: Path) -> Iterator[Record]:
    """Read a console.log back; raises LabError for a file of another format."""
    with path.open("rb") as file:
        if file.readline() != HEADER:
            raise LabError(f"{path}: is not a console record of format {HEADER.decode().strip()}")
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield _parse(line.decode())


def _parse(line: str) -> Record:
    mono, wall, kind, literal = line.rstrip("\n").split(" ", 3)
    seconds, nanoseconds = mono.split(".")
    moment = datetime.strptime(wall, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return Record(
        int(seconds) * 1_000_000_000 + int(nanoseconds),
        round(moment.timestamp() * 1e6) * 1000,
        kind,
        ast.literal_eval(literal),
    )
