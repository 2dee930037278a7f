"""Reading a bench's file `console.stamps`, whose form is in `evmperf_virtual.console`."""

import bisect
import socket
import threading
from pathlib import Path

from evmperf_virtual import client


def read_stamps(path: Path) -> list[tuple[int, int, int, int]]:
    """Read a file of stamps: (offset, length in bytes, monotonic ns of arrival and of passing on) by chunk.

    Raises ValueError if it is not a file of stamps. A last line cut short is left out.
    """
    lines = path.read_bytes().split(b"\n")[:-1]
    return [
        (offset, length, came, passed)
        for offset, length, came, passed in (map(int, n.split()) for n in lines)
    ]


class BenchStamps:
    """The stamps of a bench, which has written them by now."""

    def __init__(self, bench: client.LabClient) -> None:
        bench.status()  # which writes the stamps
        self._chunks = read_stamps(bench.folder / "console.stamps")
        self._starts = [chunk[0] for chunk in self._chunks]

    def of(self, offset: int) -> tuple[int, int]:
        """Monotonic ns at which the bench got the byte at that offset, and had passed it on."""
        return self._chunks[bisect.bisect_right(self._starts, offset) - 1][2:]


class Heard:
    """The console of a bench, listened to beside evmperf: what was said, and when it passed the bench."""

    def __init__(self, bench: client.LabClient) -> None:
        self.said = b""
        self._bench, self._base = bench, bench.status().console_bytes
        self._console = socket.create_connection(("127.0.0.1", bench.record.serial_port))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while data := self._console.recv(65536):
            self.said += data

    def passed(self, position: int) -> tuple[int, int]:
        """`BenchStamps.of` the byte at that position of `said`."""
        return BenchStamps(self._bench).of(self._base + position)

    def close(self) -> None:
        self._console.shutdown(socket.SHUT_RDWR)
        self._console.close()
