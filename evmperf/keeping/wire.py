"""Where this host's keeper listens, and its language: one JSON object a line, both ways."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError

VERSION = 2
"""Of the language. It is in the socket's name, so that unlike versions have keepers of their own
and meet only at the coordinator and at the locks.
"""

LINE_LIMIT = 1 << 20
"""Bytes of a line at most: a lab's places, in one answer."""


def network() -> str:
    """Which network namespace this is: 127.0.0.1 is another machine in each."""
    try:
        return str(Path("/proc/self/ns/net").readlink()).strip("net:[]")
    except OSError:
        return "0"


def folder() -> Path:
    """The keeper's folder, this user's only: $EVMPERF_KEEPER, or below that for temporary files.

    Not in $XDG_RUNTIME_DIR, which cron has not got and which goes with a logout. Raises LabError
    when it cannot be made, is a link, belongs to somebody else or lets others in.
    """
    usual = Path(tempfile.gettempdir(), f"evmperf-keeper-{os.getuid()}")
    path = Path(os.environ.get("EVMPERF_KEEPER") or usual)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise LabError(f"{path}: cannot be made for the keeper: {error.strerror}") from None
    wrong = ""
    if not stat.S_ISDIR(found.st_mode):
        wrong = "is a link"
    elif found.st_uid != os.getuid():
        wrong = f"belongs to user {found.st_uid}"
    elif found.st_mode & 0o077:
        wrong = f"lets others in (mode {stat.S_IMODE(found.st_mode):o}, not 700)"
    if wrong:
        raise LabError(f"{path}: {wrong}: set EVMPERF_KEEPER to a folder of yours alone")
    return path


def socket_path() -> Path:
    """The socket of the keeper of this user, network and version."""
    return folder() / f"keeper-{VERSION}-{network()}"


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as it goes over the socket."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message in a line; raises ValueError for what is none."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    return message
