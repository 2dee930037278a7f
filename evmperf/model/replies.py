"""Replies of evmperf's processes to the process that started them, as JSON.

`python -m evmperf.app` writes its replies a line each to its standard output; a pytest that
measures writes its one reply into the file of `--answer`.
"""

from pathlib import Path

import msgspec

from evmperf.model.ended import Ending
from evmperf.model.errors import Kind
from evmperf.model.exits import ExitStatus


class Reply(msgspec.Struct, frozen=True, kw_only=True, tag_field="reply", tag=True):
    """A reply; both processes are of one installation, so it needs no version."""


class Remark(Reply, frozen=True):
    """News for a person: a sentence."""

    sentence: str


class Failed(Reply, frozen=True):
    """The end of a failed request; `sentence` gives reason and remedy."""

    kind: Kind
    sentence: str


class SessionEnded(Reply, frozen=True):
    """The end of a session; `run` is the id of its run, "" when it has none."""

    run: str
    ending: Ending
    sentence: str


def answer(file: Path, status: int) -> Failed | SessionEnded:
    """The reply of a session that ended with that exit status; it is read once."""
    try:
        text = file.read_bytes()
        file.unlink()
        reply: Failed | SessionEnded = msgspec.json.decode(text, type=Failed | SessionEnded)
    except (OSError, msgspec.DecodeError):
        wrong = status in (ExitStatus.USAGE, ExitStatus.NOTHING)
        why = "no case is selected" if status == ExitStatus.NOTHING else f"exit status {status}"
        return Failed(kind=Kind.USAGE if wrong else Kind.LAB, sentence=f"the session ended: {why}")
    return reply
