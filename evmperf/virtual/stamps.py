"""When each byte of a board's console left QEMU: the file `console.stamps`.

The bench stamps every chunk the moment it has read it from QEMU's socket, before anything else is
done with it. Others that time console output (over TCP, through Labgrid) are checked against it.

Form: the line `evmperf-stamps 1\\n`, the offset of the first chunk as a little-endian 64-bit
number, then one record of 12 bytes a chunk: its length in bytes (32 bit) and the time in
nanoseconds of CLOCK_MONOTONIC (64 bit), both unsigned and little-endian. Chunks follow one another
without gap, so a chunk's offset is the sum of what came before. Offsets count from the start of
the bench. The file is complete up to the last `GET /status` or power off, whichever is later.
"""

import logging
import struct
from pathlib import Path

MAGIC = b"evmperf-stamps 1\n"
BASE = struct.Struct("<Q")
RECORD = struct.Struct("<IQ")
_LIMIT = 64 << 20
"""Size in bytes (some hundred boots) after which `rotate` starts the file anew."""

_PENDING = 64 << 10
"""Bytes of stamps that wait to be written at most."""

_log = logging.getLogger(__name__)


class Writer:
    """Collects stamps for a file; a failed write is logged and ends stamping: the console goes on."""

    def __init__(self, path: Path) -> None:
        self.offset = 0
        """Bytes stamped since the bench started."""
        self._pending = bytearray()
        self._size = 0
        self._file = path.open("wb", buffering=0)
        self._failed = False
        self._begin()

    def add(self, length: int, monotonic_ns: int) -> None:
        """Note a chunk of `length` bytes that arrived at `monotonic_ns`."""
        self.offset += length
        if not self._failed:
            self._pending += RECORD.pack(length, monotonic_ns)
            if len(self._pending) > _PENDING:
                self.flush()

    def flush(self) -> None:
        """Write what is pending; takes well below a millisecond."""
        try:
            while self._pending:
                written = self._file.write(self._pending) or 0
                self._size += written
                del self._pending[:written]
        except OSError as error:
            _log.error("console.stamps ends here, it cannot be written: %s", error)
            self._failed = True
            self._pending.clear()

    def rotate(self) -> None:
        """Start the file anew if it has grown large; called when the power goes on."""
        if self._size > _LIMIT and not self._failed:
            self._file.seek(0)
            self._file.truncate()
            self._begin()

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        self._file.close()

    def _begin(self) -> None:
        self._size = 0
        self._pending[:] = MAGIC + BASE.pack(self.offset)
        self.flush()
