"""A LAVA job's log as the server keeps it: a YAML list, one time-stamped entry a line."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import yaml

from evmperf.boards import yamlfile
from evmperf.model import limits
from evmperf.model.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LogEntry:
    """One entry: when LAVA wrote it (nanoseconds since the epoch, LAVA's clock is UTC), its level
    (target: the board's output; debug, info, error, results, ...), and its message.
    """

    time_ns: int
    level: str
    message: Any

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
            moment = datetime.fromisoformat(data["dt"]).replace(tzinfo=UTC)
            micros = (moment - _EPOCH) // (datetime.resolution)
            message = data["msg"]
            if isinstance(message, str):
                message = limits.shortened(message, limits.LAVA_LINE_CHARS)
            entries.append(LogEntry(micros * 1000, data["lvl"], message))
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


def job_result(entries: list[LogEntry]) -> dict[str, Any] | None:
    """LAVA's result of the job (`result`, `error_type`, `error_msg`); None in a log that ends before."""
    for entry in reversed(entries):
        word = entry.message
        if entry.level == "results" and isinstance(word, dict) and word.get("case") == "job":
            return word
    return None
