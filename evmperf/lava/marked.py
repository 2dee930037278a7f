"""Raw outputs of steps between marks in a job's log: written by the board's shell, read here.

Everything is printed twice, each copy complete in itself, so that a kernel message in one copy
costs nothing. The lines of a copy:

    @evmperf begin COPY SUM LABEL
    (what evmperf.measure.shellstep's wrapper printed: exit status, times, and the files)
    @evmperf end COPY SUM LABEL

SUM is a checksum of the step's command: a log is only read with the catalogue it was made with.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from evmperf.lava.joblog import LogEntry
from evmperf.model.places import is_plain

COPIES = 2
HUNG = "hung"
"""What stands in place of the wrapper's first line when a step did not end in its time."""

_MARK = re.compile(r"@evmperf (begin|end) (\d) ([0-9a-f]{16}) (\S.*?)\s*")
_HEADER = re.compile(r"@evmperf job (\S+)\s*")


def checksum(text: str) -> str:
    """16 hex digits that identify a command."""
    return hashlib.sha256(f"{text}\n".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class MarkedBlock:
    """What one step printed: its copies, and when the first began, which is when the step ended."""

    label: str
    checksum: str
    copies: tuple[str, ...]
    time_ns: int


def encode_header(header: Mapping[str, str]) -> str:
    """What a job is, as one word without quotes, which LAVA's log would change."""
    return urlencode(sorted(header.items()), safe=",")


def decode_header(text: str) -> dict[str, str]:
    """A job's header, whose board file is a plain name and never a path; raises ValueError."""
    header = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
    if not {"schema", "kind", "board_file", "profile", "benchmarks"} <= set(header):
        raise ValueError("the header lacks a field")
    if not is_plain(header["board_file"]):
        raise ValueError(f"{header['board_file']!r} is not the plain name of a board file")
    return header


def header_line(header: Mapping[str, str]) -> str:
    """The line that says what job a log is of."""
    return f"@evmperf job {encode_header(header)}"


def read_header(lines: Iterable[LogEntry]) -> dict[str, str] | None:
    """What job a log is of; None if it does not say so in one whole line."""
    for line in lines:
        if match := _HEADER.fullmatch(line.text):
            with contextlib.suppress(ValueError):
                return decode_header(match[1])
    return None


def read_blocks(lines: Iterable[LogEntry]) -> dict[str, MarkedBlock]:
    """All steps that have at least one copy with both marks, by label."""
    found: dict[str, MarkedBlock] = {}
    begun: tuple[str, ...] | None = None
    body: list[str] = []
    time_ns = 0
    for line in lines:
        match = _MARK.fullmatch(line.text)
        if not match:
            body.append(line.text)
            continue
        what, *key = match.groups()
        if what == "begin":
            begun, body, time_ns = tuple(key), [], line.time_ns
            continue
        if begun == tuple(key):
            _, total, label = key
            before = found.get(label)
            found[label] = MarkedBlock(
                label,
                total,
                (*(before.copies if before else ()), "\n".join(body)),
                before.time_ns if before else time_ns,
            )
        begun = None
    return found
