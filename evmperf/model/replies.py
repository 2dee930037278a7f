"""What a process asks of a session that it starts, and its reply: JSON in the file of `--answer`."""

import sys
from pathlib import Path

import msgspec

from evmperf.model.ended import Ending
from evmperf.model.exits import ExitStatus


class WantedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A measuring session, by pytest's options of these names (`pytest --help` describes them); `select`
    is -k, `board` a board file.
    """

    board: str
    select: str = ""
    options_file: str = ""
    results: str = "results"
    answer: str = ""
    run_id: str = ""
    run_kind: str = "desk"
    profile: str = ""
    image: str = ""
    release: str = ""
    repeat: str = "1"
    boots: int = 0
    end: tuple[str, ...] = ()
    reference: str = ""
    tool: str = ""
    vary: tuple[str, ...] = ()
    fact: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    wait: str = ""
    keep_on: bool = False
    perf: bool = False

    def command(self) -> list[str]:
        """The process that measures."""
        words = [sys.executable, "-m", "pytest", "--lg-env", self.board]
        words += ["-k", self.select] if self.select else []
        for field in msgspec.structs.fields(self)[2:]:
            value, option = getattr(self, field.name), f"--{field.name.replace('_', '-')}"
            if value != field.default:
                given = value if isinstance(value, tuple) else (value,)
                words += [option] if value is True else [f"{option}={one}" for one in given]
        return words


class SessionEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a session; `run` is the id of its run, "" when it has none."""

    run: str = ""
    ending: Ending
    sentence: str


def answer(file: Path, status: int) -> SessionEnded:
    """The reply of a session that ended with that exit status; it is read once."""
    try:
        text = file.read_bytes()
        file.unlink()
        return msgspec.json.decode(text, type=SessionEnded)
    except (OSError, msgspec.DecodeError):
        wrong = status in (ExitStatus.USAGE, ExitStatus.NOTHING)
        why = "no case is selected" if status == ExitStatus.NOTHING else f"exit status {status}"
        ending = Ending.WRONG if wrong else Ending.LAB
        return SessionEnded(ending=ending, sentence=f"the session ended: {why}")
