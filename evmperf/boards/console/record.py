"""The console as a record: every byte with the time it arrived.

File format `evmperf-console/2` (console.log): a header line, then one line per record:

    MONOTONIC WALL KIND BOUND LITERAL

MONOTONIC is CLOCK_MONOTONIC in seconds with nanoseconds, WALL the UTC time, KIND is `<` for bytes
from the board, `>` for bytes sent to it, `#` for an event of the lab (power, connection), BOUND how
much earlier than that any of it may have been at most, in seconds with nanoseconds, and LITERAL a
Python bytes literal. A line cut short by a crash is the last one and is ignored.
"""

import ast
import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from evmperf.model import limits
from evmperf.model.concealing import known
from evmperf.model.errors import LabError

HEADER = b"evmperf-console/2\n"
POWER_ON = "power on"
POWER_OFF = "power off"
POWER_ANSWERED = "power switch has answered"
ASKED_OFF = "a person is asked to switch off"
ASKED_ON = "a person is asked to switch on"
RESET = "reset by software"
RESET_LINE = "reset by its reset line"
BEGINNINGS = frozenset({POWER_ON, ASKED_ON, RESET, RESET_LINE})
"""Events that begin a boot."""

BITS_A_BYTE = 10
"""On a serial line: start, eight of data, stop."""

_SLACK_NS = 500_000
"""By how much a piece may be early without that being evidence."""
_NEAR_NS = 100_000_000
"""So long before and after a hold-up at least, others of that size may have come unseen."""
_MUCH = 3
"""A pause may be longer than what was held up, as a board need not talk all the time: what is near
it is supposed to have been held up for so many times what the line needs for what came then.
"""

_MARGIN_NS = {"serial": 1_000_000, "raw": 3_000_000, "rfc2217": 4_000_000}
"""What the bounds of each kind of wire have beside what shows on it: ser2net and a busy host keep bytes for
some time without a trace, 1.7 ms at most, and 2.1 ms over RFC 2217, on two cores at loads of 6 to 22
(`python -m selftests.speed wires`).
"""

_LINE_CHARS = 2000
"""Of a line that is shown."""
_WAITING_BYTES = 4096
"""Of output whose last bytes may begin a secret; a board may print such bytes without end."""
_RECORD_BYTES = 256
"""What a record takes in memory beside its bytes."""


@dataclass(frozen=True)
class ConsoleRecord:
    """Bytes or an event, when (CLOCK_MONOTONIC, epoch), and `bound_ns`: the most that they came earlier."""

    mono_ns: int
    wall_ns: int
    kind: str
    data: bytes
    bound_ns: int = 0

    def line(self) -> bytes:
        """This record as a line of console.log."""
        wall = datetime.fromtimestamp(self.wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mono, bound = (f"{ns // 10**9}.{ns % 10**9:09d}" for ns in (self.mono_ns, self.bound_ns))
        return f"{mono} {wall} {self.kind} {bound} {self.data!r}\n".encode()


class Line:
    """A serial line's rate as a check of stamps: more bytes than its baud allows were held up."""

    def __init__(self, baud: int) -> None:
        self._byte_ns = BITS_A_BYTE * 1_000_000_000 / baud
        self._late_ns = 0.0
        self._at_ns = 0

    def late_ns(self, mono_ns: int, length: int) -> int:
        """By how many ns what arrived until `mono_ns`, the last `length` bytes among it, is more
        than the line could have carried since it was last idle: so long was some of it held up.
        """
        passed = mono_ns - self._at_ns
        self._at_ns = mono_ns
        self._late_ns = max(0.0, self._late_ns - passed) + length * self._byte_ns
        return round(self._late_ns)


def widened(records: Sequence[ConsoleRecord], baud: int) -> list[ConsoleRecord]:
    """The records of a line of that rate, with bounds that have what was held up on its way here.

    A server (or a kernel) that was kept from running hands on what waits in several pieces, the first
    of which looks like any other. The next ones give it away: they are more than the line can have
    carried since the one before. All of them may have waited since the last piece before the pause.
    """
    pieces = [record for record in records if record.kind == "<"]
    # One piece may have waited alone, from the one before on.
    gaps = [
        record.mono_ns - before.mono_ns
        for before, record in zip([*pieces[:1], *pieces], pieces, strict=False)
    ]
    alone = [_MUCH * len(record.data) * BITS_A_BYTE * 1_000_000_000 // baud for record in pieces]
    bounds = [max(r.bound_ns, min(gap, most)) for r, gap, most in zip(pieces, gaps, alone, strict=True)]
    line, late_ns = Line(baud), 0
    sizes: dict[int, int] = {}
    """Of hold-ups, by when something is near one."""
    first = done = 0
    for number, record in enumerate(pieces):
        before, late_ns = late_ns, line.late_ns(record.mono_ns, len(record.data))
        if not number or late_ns <= gaps[number] + _SLACK_NS:
            first = number
            continue
        last = pieces[max(first - 1, 0)]
        since = last.mono_ns - last.bound_ns
        for held in range(max(first, done), number + 1):
            bounds[held] = max(bounds[held], pieces[held].mono_ns - since)
        done = number + 1
        size = min(record.mono_ns - since, _MUCH * max(before, late_ns))
        for near in range(pieces[first].mono_ns // _NEAR_NS - 1, record.mono_ns // _NEAR_NS + 2):
            sizes[near] = max(sizes.get(near, 0), size)
    widest = iter(bounds)
    return [
        replace(r, bound_ns=max(next(widest), sizes.get(r.mono_ns // _NEAR_NS, 0))) if r.kind == "<" else r
        for r in records
    ]


def bounded(records: Sequence[ConsoleRecord], wire: str, baud: int) -> list[ConsoleRecord]:
    """The records with the bounds that hold over a kind of wire: `serial`, or `raw` and `rfc2217`, where a
    server is between board and lab, whose hold-ups show (`widened`).
    """
    seen = records if wire == "serial" else widened(records, baud)
    return [replace(r, bound_ns=r.bound_ns + _MARGIN_NS[wire]) if r.kind == "<" else r for r in seen]


class History:
    """What the console said since the last power-on, and the file that all of it goes to.

    Fed by the thread that reads the console, read by others; every method may be called from any
    thread. A file that cannot be written does not disturb the reading: the first such error is
    kept and raised by `check`. What memory and file hold has limits (`evmperf.model.limits`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[ConsoleRecord] = []
        self._bytes = 0
        self._written = 0
        self._since_ns = 0
        self._file: BinaryIO | None = None
        self._secrets: list[bytes] = []
        self._waiting: list[ConsoleRecord] = []
        """Written with what follows, as the last bytes may begin a secret."""
        self._error: OSError | None = None

    def open(self, path: Path) -> None:
        """Write everything from now on to `path` as well, which this user alone may read: it has logins."""
        with self._lock:
            path.touch(0o600)
            self._file = path.open("ab", buffering=0)
            self._written = self._file.tell()
            self._secrets = [secret.encode() for secret in known()]
            if self._written == 0:
                self._write(HEADER)

    def close(self) -> None:
        """Stop writing to the file."""
        with self._lock:
            if self._file:
                self._hand_on(to_the_end=True)
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

    def feed(self, data: bytes, mono_ns: int, bound_ns: int = 0, *, kind: str = "<") -> None:
        """Keep bytes that arrived (or were sent) at `mono_ns`, or at most `bound_ns` before."""
        # The wall clock is derived so that both stamps are of the same instant.
        wall_ns = time.time_ns() - (time.monotonic_ns() - mono_ns)
        self._keep(ConsoleRecord(mono_ns, wall_ns, kind, data, bound_ns))

    def event(self, text: str, mono_ns: int | None = None) -> None:
        """Keep an event of the lab; the beginning of a boot starts the record in memory anew."""
        mono_ns = time.monotonic_ns() if mono_ns is None else mono_ns
        if text in BEGINNINGS or text == ASKED_OFF:
            with self._lock:
                self._records.clear()
                self._bytes = 0
                self._since_ns = mono_ns
        self.feed(text.encode(), mono_ns, kind="#")

    def is_old(self, mono_ns: int) -> bool:
        """Whether what arrived then belongs to an earlier power-on, and was on its way since."""
        return mono_ns < self._since_ns

    def records(self) -> list[ConsoleRecord]:
        """Everything since the last power-on."""
        with self._lock:
            return list(self._records)

    def tail(self, lines: int) -> list[str]:
        """The last lines that the board printed, control characters replaced."""
        data = b"".join(r.data for r in self.records()[-20_000:] if r.kind == "<")
        text = data.decode("utf-8", "replace").replace("\r", "")
        return [
            "".join(c if c.isprintable() else "?" for c in limits.shortened(line, _LINE_CHARS))
            for line in text.split("\n")[-lines:]
        ]

    def _keep(self, record: ConsoleRecord) -> None:
        with self._lock:
            if not self.is_old(record.mono_ns):
                self._records.append(record)
                self._bytes += len(record.data) + _RECORD_BYTES
            if self._bytes > limits.BOOT_BYTES:
                half = len(self._records) // 2
                self._bytes -= sum(len(r.data) + _RECORD_BYTES for r in self._records[:half])
                del self._records[:half]
            if not self._file:
                return
            # Of a file that is full, only the events of the lab go on.
            full = self._written > limits.CONSOLE_LOG_BYTES
            if record.kind != "<" or not full:
                self._waiting.append(record)
                self._hand_on()
            if not full and self._written > limits.CONSOLE_LOG_BYTES:
                notice = f"console output is not kept from here on: {limits.CONSOLE_LOG_BYTES} bytes"
                self._write(replace(record, kind="#", data=notice.encode(), bound_ns=0).line())

    def _hand_on(self, to_the_end: bool = False) -> None:
        """Write what waits, known secrets as asterisks, also one that came in several pieces."""
        for kind in "<>":
            pieces = [record.data for record in self._waiting if record.kind == kind]
            said = b"".join(pieces)
            for secret in self._secrets:
                said = said.replace(secret, b"*" * len(secret))
                begun = any(said.endswith(secret[:length]) for length in range(1, len(secret)))
                if begun and not to_the_end and len(said) < _WAITING_BYTES:
                    return
            if said != b"".join(pieces):
                rest = iter(said)
                self._waiting = [
                    replace(record, data=bytes(islice(rest, len(record.data))))
                    if record.kind == kind
                    else record
                    for record in self._waiting
                ]
        for record in self._waiting:
            self._write(record.line())
        self._waiting.clear()

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


def read(path: Path) -> Iterator[ConsoleRecord]:
    """Read a console.log back; raises LabError for a file of another format or a broken line."""
    with path.open("rb") as file:
        header = file.readline(len(HEADER) + 1)
        if header != HEADER:
            form = HEADER.decode().strip()
            raise LabError(
                f"{path}: is not a console record ({form}): give a run's console.log, or that of "
                f"`evmperf doctor BOARD --console FILE`"
            )
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                return
            try:
                yield _parse(line.decode())
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
                raise LabError(f"{path}: line {number} is not a console record") from error


def _parse(line: str) -> ConsoleRecord:
    mono, wall, kind, bound, literal = line.rstrip("\n").split(" ", 4)
    data = ast.literal_eval(literal)
    if not isinstance(data, bytes):
        raise TypeError(f"{kind} holds no bytes")
    moment = datetime.strptime(wall, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return ConsoleRecord(
        _nanoseconds(mono), round(moment.timestamp() * 1e6) * 1000, kind, data, _nanoseconds(bound)
    )


def _nanoseconds(text: str) -> int:
    seconds, nanoseconds = text.split(".")
    return int(seconds) * 1_000_000_000 + int(nanoseconds)
