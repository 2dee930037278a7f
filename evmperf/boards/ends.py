"""Further ends of a boot that a board file or `--end` names: an answer over the network, a
line of the console or of a digital input, a unit."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from evmperf.boards.board import Board
from evmperf.boards.options import End
from evmperf.model.errors import UsageError

KINDS = ("line", "ping", "tcp", "http", "gpio", "unit")
NETWORK = ("ping", "tcp", "http")
"""Ends that answer over the network."""
_INTERVAL_MS, _VIRTUAL_MS = 20, 200
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FORM = (
    "--end takes NAME=line:REGEX, NAME=ping:ADDRESS, NAME=tcp:HOST:PORT, NAME=http://URL, "
    "NAME=gpio:DRIVER or NAME=unit:UNIT"
)


def kind(end: End) -> str:
    """Which of KINDS an end is."""
    return next(word for word in KINDS if getattr(end, word))


def target(end: End) -> str:
    """What it waits for: the expression, the address, the URL or the unit."""
    return str(getattr(end, kind(end)))


def of_board(board: Board) -> dict[str, End]:
    """The ends of a board, each with the interval of its questions."""
    slow = _VIRTUAL_MS if board.options.board.virtual else _INTERVAL_MS
    return {
        name: structs.replace(
            end, interval_ms=end.interval_ms or (slow if kind(end) in NETWORK else _INTERVAL_MS)
        )
        for name, end in board.options.boot.ends.items()
    }


def checked(board: Board, words: Sequence[str] = ()) -> Board:
    """The board with the ends that `words` (of `--end`) add; raises UsageError with the file for an end
    that cannot come.
    """
    for name, end in board.options.boot.ends.items():
        if complaint := _complaint(name, end):
            raise UsageError(f"{board.file}: boot.ends.{name}: {complaint}")
    if not words:
        return board
    ends = dict(board.sections.get("boot", {}).get("ends", {}))
    for word in words:
        name, _, text = word.partition("=")
        ends[name] = fields = _fields(text)
        if not fields:
            raise UsageError(f"--end={word}: is no end of a boot: {_FORM}")
        if complaint := _complaint(name, msgspec.convert(fields, End)):
            raise UsageError(f"--end={word}: {complaint}")
    boot = {**board.sections.get("boot", {}), "ends": ends}
    return replace(board, sections={**board.sections, "boot": boot})


def _fields(text: str) -> dict[str, str]:
    word, colon, what = text.partition(":")
    if word not in KINDS or not what:
        return {}
    return {word: text if word == "http" else what} if colon else {}


def _complaint(name: str, end: End) -> str:
    """Why an end cannot come, "" if it can."""
    given = [word for word in KINDS if getattr(end, word)]
    if not _NAME.fullmatch(name):
        return "its name must have small letters, digits and _, at most 32"
    if len(given) != 1:
        return f"it must have one of {', '.join(KINDS)}, not {' and '.join(given) or 'none'}"
    try:
        if end.line:
            re.compile(end.line.encode())
        elif end.ping:
            ipaddress.IPv4Address(end.ping)
    except re.error as error:
        return f"{end.line!r} is no regular expression: {error}"
    except ValueError as error:
        return str(error)
    if end.unit:
        is_named = re.fullmatch(r"[\w@.:\\-]+", f"{end.unit}{end.property}")
        return "" if is_named else f"{end.unit} {end.property} are no names of systemd's"
    form = "an http:// URL without a user" if end.http else "HOST:PORT"
    return "" if end.line or end.gpio or all(address(end)) else f"{target(end)} is not {form}"


def address(end: End) -> tuple[str, int]:
    """Host and port of an end over the network; "" or 0 where it has none."""
    if end.ping:
        return end.ping, 1
    try:
        parts = urlsplit(end.http or f"tcp://{end.tcp}")
        port = parts.port or (80 if parts.scheme == "http" else 0)
    except ValueError:
        return "", 0
    is_plain = parts.scheme in ("http", "tcp") and "@" not in parts.netloc  # no user is sent, nor shown
    return (parts.hostname or "", port) if is_plain else ("", 0)


def described(ends: Mapping[str, End]) -> dict[str, Any]:
    """The ends as conditions of a result."""
    return {name: f"{kind(end)} {target(end)}" for name, end in ends.items()}
