"""Work in a process of its own, which is ended when it takes too long or too much memory."""

import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TextIO

from evmperf.model.errors import EvmperfError, Kind, LabError, UsageError
from evmperf.model.exits import ExitStatus

_LOOK_MS = 20
"""How often its memory is looked at."""
_REFUSED = 255
"""The process' status when its work raised an EvmperfError."""


def limited(work: Callable[[TextIO], int], out: TextIO, most_s: float, most_bytes: int) -> int:
    """Do work that writes text and returns an exit status; its text goes to `out` when all of it is there.

    Raises UsageError beyond `most_s` seconds or `most_bytes` of resident memory, and the EvmperfError that
    the work raises.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as written:
        if not (pid := os.fork()):
            _do(work, written)
        try:
            status = _end(pid, most_s, most_bytes)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        written.seek(0)
        if status == _REFUSED:
            kind, sentence = json.load(written)
            raise (UsageError if kind == Kind.USAGE else LabError)(sentence)
        shutil.copyfileobj(written, out)
        return status


def _do(work: Callable[[TextIO], int], written: TextIO) -> NoReturn:
    status = int(ExitStatus.INTERNAL)
    try:
        status = work(written)
        written.flush()
    except EvmperfError as error:
        written.seek(0)
        written.truncate()
        json.dump([error.kind, str(error)], written)
        written.flush()
        status = _REFUSED
    except BaseException:  # noqa: BLE001  # nothing of ours may go on in this process
        traceback.print_exc()
    finally:
        os._exit(status)


def _end(pid: int, most_s: float, most_bytes: int) -> int:
    """The status of a process at its end; raises UsageError where it takes too much."""
    deadline = time.monotonic() + most_s
    handle = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        while not ended.poll(_LOOK_MS):
            if time.monotonic() > deadline:
                raise UsageError(f"no answer within {most_s:g} s: ask for less, or give more --timeout")
            pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
            if pages * os.sysconf("SC_PAGESIZE") > most_bytes:
                raise UsageError(
                    f"the answer takes more than {most_bytes / 1e9:g} GB of memory: ask for less"
                )
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
