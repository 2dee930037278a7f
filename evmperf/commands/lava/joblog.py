"""A LAVA job's log as the server keeps it, a YAML list with one time-stamped entry a line: what the board
said, which steps printed what, and why the job failed.

The board's shell prints each step's output twice, each copy complete in itself, so that a kernel message
in one copy costs nothing. The lines of a copy:

    @evmperf begin COPY SUM LABEL
    (what evmperf.measure.shellstep's wrapper printed: exit status, times, and the files)
    @evmperf end COPY SUM LABEL

SUM is a checksum of the step's command: a log is only read with the catalogue it was made with.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import yaml

from evmperf.boards import yamlfile
from evmperf.boards.console.watch import Watch
from evmperf.model import limits
from evmperf.model.errors import BoardError, EvmperfError, LabError, ToolError, UsageError
from evmperf.model.places import is_plain

SUITE = "evmperf"
"""The test definition of every job."""
COPIES = 2
HUNG = "hung"
"""What stands in place of the wrapper's first line when a step did not end in its time."""

_MARK = re.compile(r"@evmperf (begin|end) (\d) ([0-9a-f]{16}) (\S.*?)\s*")
_HEADER = re.compile(r"@evmperf job (\S+)\s*")
_RESET = re.compile(r"start: (\d+)\.\S* reset-device")

RAISED = {
    "no_checkout": "evmperf-is-not-in-EVMPERF_HOME",
    "lab_broken": "evmperf-calls-the-lab-broken",
    "not_run": "evmperf-did-not-measure",
    "no_overlay": "no-test-shell-came-over-the-network",
}
"""What a job's shell raises, by the word for it in the templates."""

CANCELLED = "the LAVA job was cancelled"

# lava_common/exceptions.py of LAVA 2023.01. "Job" is whatever came of the job itself: mostly the
# board, but also what the job's author wrote or named.
_LAB = ("Infrastructure", "Configuration", "Bug", "MultinodeTimeout")
_AUTHOR = re.compile(r"Invalid job|validat|not found in supported|Resource .*(unavailable|not)", re.I)
_DEPLOYING = re.compile(r"download|deploy|tftp|overlay|compress|extract", re.I)


@dataclass(frozen=True)
class LogEntry:
    """One entry: when LAVA wrote it (nanoseconds since the epoch, LAVA's clock is UTC), its level
    (target: the board's output; debug, info, error, results, ...), and its message.
    """

    time_ns: int
    level: str
    message: object

    @property
    def text(self) -> str:
        """The message, if it is text."""
        return self.message if isinstance(self.message, str) else ""


def parse(text: str, name: str) -> list[LogEntry]:
    """The entries of a log, messages shortened, a cut last line left out; raises UsageError."""
    lines = text.splitlines(keepends=True)
    entries: list[LogEntry] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = _entry(line)
            if not isinstance(data["lvl"], str):
                raise TypeError
            if "\\ud" in line.lower():  # half of a surrogate pair is no text
                json.dumps(data, ensure_ascii=False).encode()
            moment = datetime.fromisoformat(data["dt"]).replace(tzinfo=UTC)
            message = data["msg"]
            if isinstance(message, str):
                message = limits.shortened(message, limits.LAVA_LINE_CHARS)
            # LAVA writes microseconds, which a float holds.
            entries.append(LogEntry(round(moment.timestamp() * 1e6) * 1000, data["lvl"], message))
        except (ValueError, KeyError, TypeError, RecursionError, yaml.YAMLError):
            if number == len(lines) and not line.endswith("\n"):
                break
            raise UsageError(
                f"{name} line {number}: not an entry of a LAVA log in YAML; LAVA's plain log has "
                f"no time stamps and cannot be used: download the YAML log"
            ) from None
    if not entries:
        raise UsageError(f"{name}: the log is empty: download the job's YAML log again")
    return entries


def _entry(line: str) -> Any:
    # Most entries are JSON, which is read a hundred times as fast.
    try:
        return json.loads(line.removeprefix("- "))
    except ValueError:
        if len(line) > limits.LAVA_LINE_CHARS:
            raise
        quick = len(line) <= yamlfile.NESTING_SAFE_CHARS
        return yaml.load(line, Loader=yamlfile.QUICK if quick else yaml.SafeLoader)[0]


def board_lines(entries: list[LogEntry]) -> list[LogEntry]:
    """What the board printed."""
    return [entry for entry in entries if entry.level == "target"]


def power_on(entry: LogEntry) -> int:
    """The number of the job's action that begins to switch the board off and on, 0 for another entry."""
    match = None if entry.level == "target" else _RESET.match(entry.text)
    return int(match[1]) if match else 0


def job_result(entries: list[LogEntry]) -> dict[str, Any] | None:
    """LAVA's result of the job (`result`, `error_type`, `error_msg`); None in a log that ends before."""
    for entry in reversed(entries):
        word = entry.message
        if entry.level == "results" and isinstance(word, dict) and word.get("case") == "job":
            return word
    return None


def reported(entries: list[LogEntry]) -> dict[str, str]:
    """The results of the test cases that the job's suite reported, by name."""
    found = (entry.message for entry in entries if entry.level == "results")
    return {
        str(word.get("case")): str(word.get("result"))
        for word in found
        # LAVA puts the suite's index in front.
        if isinstance(word, dict) and str(word.get("definition")).partition("_")[2] == SUITE
    }


# Marks of the board's shell


def checksum(text: str) -> str:
    """16 hex digits that identify a command."""
    return hashlib.sha256(f"{text}\n".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class MarkedBlock:
    """What one step printed: its copies, and when the first began, which is when the step ended."""

    label: str
    checksum: str
    time_ns: int
    copies: list[str] = field(default_factory=list)


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


def read_header(entries: list[LogEntry], name: str) -> dict[str, str]:
    """What job a log is of; raises UsageError for one that does not say so in one whole line."""
    for line in board_lines(entries):
        if match := _HEADER.fullmatch(line.text):
            with contextlib.suppress(ValueError):
                return decode_header(match[1])
    raise UsageError(f"{name}: not the log of an evmperf job, or the job never reached its test shell")


def read_blocks(entries: list[LogEntry]) -> dict[str, MarkedBlock]:
    """All steps that have at least one copy with both marks, by label."""
    blocks: dict[str, MarkedBlock] = {}
    begun: tuple[str, ...] = ()
    body: list[str] = []
    time_ns = 0
    for line in board_lines(entries):
        match = _MARK.fullmatch(line.text)
        if not match:
            body.append(line.text)
        elif match[1] == "begin":
            begun, body, time_ns = match.groups()[1:], [], line.time_ns
        else:
            if begun == match.groups()[1:]:
                _, total, label = begun
                block = blocks.setdefault(label, MarkedBlock(label, total, time_ns))
                block.copies.append("\n".join(body))
            begun = ()
    return blocks


# The end of a job


def failure(entries: list[LogEntry]) -> EvmperfError | None:
    """The reason of a job's failure, None for a complete one; a kernel panic is the board's."""
    last = job_result(entries)
    if last and last.get("result") == "pass":
        return None
    if last is None:
        return LabError("LAVA lost the job: its log ends without a result; submit it again")
    kind = str(last.get("error_type", ""))
    message = " ".join(str(last.get("error_msg") or "no reason given").split())[:300]
    if kind == "Canceled":
        return LabError(CANCELLED)
    if alarm := _alarm(entries):
        return BoardError(f"{alarm} (LAVA: {message})")
    return _sorted(kind, message)


def _sorted(kind: str, message: str) -> EvmperfError:
    if kind == "Test" and any(word in message for word in RAISED.values()):
        return LabError(f"the LAVA job says: {message}")
    if kind in _LAB or _DEPLOYING.search(message):
        return LabError(f"LAVA: {kind}: {message}")
    # "LAVATimeout" is of the test shell, whose steps all end in their time on a living board.
    if kind == "Test":
        return ToolError(f"LAVA: {message}")
    if _AUTHOR.search(message):
        return UsageError(f"LAVA refuses the job: {message}")
    return BoardError(f"LAVA: {message}")


def _alarm(entries: list[LogEntry]) -> str:
    """The first panic or oops on the console since the last power cycle."""
    last = max((number for number, entry in enumerate(entries) if power_on(entry)), default=0)
    watch = Watch()
    for entry in board_lines(entries[last:]):
        alarm = watch.feed(f"{entry.text}\r\n".encode())
        if alarm and alarm.name != "silent reset":
            return f"{alarm.name} on the console: {alarm.text}"
    return ""
