"""Reading a bench's file `console.stamps`, whose form is in `evmperf_virtual.console`."""

import bisect
import contextlib
import socket
import threading
import time

from selftests.support.placelab import until


def read_stamps(path):
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

    def __init__(self, bench):
        bench.status()  # which writes the stamps
        self._chunks = read_stamps(bench.folder / "console.stamps")
        self._starts = [chunk[0] for chunk in self._chunks]

    def of(self, offset):
        """Monotonic ns at which the bench got the byte at that offset, and had passed it on."""
        return self._chunks[bisect.bisect_right(self._starts, offset) - 1][2:]


class Heard:
    """The console of a bench, listened to beside evmperf: what was said, and when it passed the bench and
    came here (`arrivals`: bytes up to then, and monotonic ns). It can be typed on, too.
    """

    def __init__(self, bench):
        self.said = b""
        self.arrivals: list[tuple[int, int]] = []
        self._seen = 0
        self._bench, self._base = bench, bench.status().console_bytes
        self._console = socket.create_connection(("127.0.0.1", bench.record.serial_port))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(OSError):
            while data := self._console.recv(65536):
                self.arrivals.append((len(self.said) + len(data), time.monotonic_ns()))
                self.said += data

    def passed(self, position):
        """`BenchStamps.of` the byte at that position of `said`."""
        return BenchStamps(self._bench).of(self._base + position)

    def send(self, data):
        self._console.sendall(data)

    def wait_for(self, text, within_s=30.0):
        """Wait for a text after the last one; returns the position behind it."""
        until(lambda: text in self.said[self._seen :], within_s)
        self._seen = self.said.index(text, self._seen) + len(text)
        return self._seen

    def drain(self):
        """Pass over what comes until nothing more does."""
        before = -1
        while before != len(self.said):
            before = len(self.said)
            time.sleep(0.2)
        self._seen = before

    def stop_autoboot(self):
        """Come from power-on to U-Boot's prompt."""
        self.wait_for(b"autoboot")
        self.send(b"\n")
        self.wait_for(b"=> ")

    def close(self):
        self._console.shutdown(socket.SHUT_RDWR)
        self._console.close()
