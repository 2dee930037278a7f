"""Files that a person names: their text, within a size, and never waited for."""

import os
import stat
from pathlib import Path

from evmperf.model import limits
from evmperf.model.errors import UsageError


def text(file: Path, most: int) -> str:
    """The text of a regular file of at most `most` bytes in UTF-8; raises UsageError for any other."""
    try:
        # O_NONBLOCK: the open of a pipe that nobody writes would wait for ever.
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UsageError(f"{file}: is no regular file: write what it gives to one")
            data = opened.read(most + 1)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise UsageError(f"{file}: is larger than {limits.mib(most)}: not read")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{file} line {line}: is not UTF-8 text") from error
