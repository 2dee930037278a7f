"""The socket of this host's keeper: one JSON object a line, both ways."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from evmperf.model.errors import LabError

_VERSION = 4
"""Version of the protocol. The socket's name includes it, so each version has its own keeper;
coordinator and locks keep them apart.
"""
LINE_LIMIT = 1 << 20
"""Maximum bytes of a line: one answer with all places of a lab."""


def network() -> str:
    """Identifies the network namespace: each has its own 127.0.0.1."""
    try:
        return str(Path("/proc/self/ns/net").readlink()).strip("net:[]")
    except OSError:
        return "0"


def folder() -> Path:
    """The keeper's private folder, $EVMPERF_KEEPER or a temporary one: cron lacks $XDG_RUNTIME_DIR, and a
    logout removes it. Raises LabError if it is a link, another user's, or open to others.
    """
    usual = Path(tempfile.gettempdir(), f"evmperf-keeper-{os.getuid()}")
    path = Path(os.environ.get("EVMPERF_KEEPER") or usual)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise LabError(f"{path}: the keeper's folder cannot be created: {error.strerror}") from None
    wrong = ""
    if not stat.S_ISDIR(status.st_mode):
        wrong = "is a link"
    elif status.st_uid != os.getuid():
        wrong = f"belongs to user {status.st_uid}"
    elif status.st_mode & 0o077:
        wrong = f"is open to others (mode {stat.S_IMODE(status.st_mode):o}, not 700)"
    if wrong:
        raise LabError(f"{path}: {wrong}: set EVMPERF_KEEPER to a private folder")
    return path


def socket_path() -> Path:
    """The socket of the keeper of this user, network and version."""
    return folder() / f"keeper-{_VERSION}-{network()}"


def encode(message: Mapping[str, object]) -> bytes:
    """A message as a line."""
    return msgspec.json.encode(message) + b"\n"
