"""What the board said while a case went wrong."""

import ast
import contextlib
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evmperf.model.results import Result

_BEFORE_TEXT = 4
"""What a record of console.log has before its text."""
_LINES = 30
_WIDTH = 200
_BASE64 = re.compile(r"[A-Za-z0-9+/]{60,}={0,2}")
_LEFT_OUT = "[output of a step, as a compressed archive]"


@dataclass
class _Window:
    """A span of wall time, as console.log writes times, and the last records within it."""

    begin: bytes
    end: bytes
    records: deque[bytes] = field(default_factory=lambda: deque(maxlen=400))


def excerpts(console_log: Path, results: Sequence[Result]) -> list[str]:
    """The console's last lines during each result, "" without any, in one pass over the file."""
    windows = [
        _Window(_stamp(r.started_ns), _stamp(r.started_ns + round(r.duration_s * 1e9) + 10**6))
        for r in results
    ]
    if not windows or not console_log.exists():
        return [""] * len(results)
    with console_log.open("rb") as file:
        # Only the few records of a window are worth parsing.
        for line in file:
            parts = line.split(b" ", _BEFORE_TEXT)
            if len(parts) <= _BEFORE_TEXT or parts[2] != b"<":
                continue
            for window in windows:
                if window.begin <= parts[1] <= window.end:
                    window.records.append(parts[-1])
    return [_text(window.records) for window in windows]


def _stamp(time_ns: int) -> bytes:
    seconds, rest = divmod(time_ns, 10**9)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1000:06}Z".encode()


def _text(records: Sequence[bytes]) -> str:
    """What was said, with a word in place of the base64 in which steps' outputs come back."""
    data = b""
    for record in records:
        with contextlib.suppress(ValueError, SyntaxError):  # a line cut by a crash
            data += ast.literal_eval(record.decode())
    kept: list[str] = []
    for text in data.decode("utf-8", "replace").replace("\r", "").split("\n"):
        line = "".join(c if c.isprintable() else "?" for c in text)
        if not _BASE64.fullmatch(line):
            kept.append(line)
        elif kept[-1:] != [_LEFT_OUT]:
            kept.append(_LEFT_OUT)
    return "\n".join(line[:_WIDTH] for line in kept[-_LINES:]).strip()
