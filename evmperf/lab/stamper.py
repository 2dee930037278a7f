"""A process that does nothing but read a console and stamp what arrives.

A thread of the measuring process would stamp late: under load it waits for a core and for Python's
interpreter lock, and what arrives meanwhile gets one stamp (measured, `make bench`: up to 0.1 s).
This process asks for real-time priority, which needs root, CAP_SYS_NICE or an rtprio limit.

Protocol: bytes on standard input go to the board. On standard output come frames, each of a header
(stamp in ns of CLOCK_MONOTONIC, length in bytes; little-endian 64 and 32 bits) and that many bytes
from the board. The first frame is empty; its "stamp" is 1 with real-time priority and 0 without.
A console that cannot be opened, or is lost, is a sentence on standard error and exit status 1.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import threading
import time

from evmperf.lab.transport import Transport, connect
from evmperf.model.errors import LabError

_HEADER = struct.Struct("<QI")
_PRIORITY = 1
"""Of SCHED_FIFO, the lowest: it is enough to come before everything that is not real-time."""

_START_S = 10.0
"""Seconds that starting the process may take beside the time to connect."""


class StampedPort:
    """A console behind a stamping process; raises LabError when it cannot be opened."""

    def __init__(self, protocol: str, place: str, port: int, baud: int, timeout_s: float) -> None:
        arguments = [protocol, place, str(port), str(baud), str(timeout_s)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "evmperf.lab.stamper", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C is for the measuring process; this one ends when its input does.
            start_new_session=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        self._buffer = bytearray()
        guard = threading.Timer(timeout_s + _START_S, self._process.kill)
        guard.start()
        try:
            real_time, _ = self.read()
        except ConnectionError as error:
            self.close()
            raise LabError(str(error)) from None
        finally:
            guard.cancel()
        self.real_time = bool(real_time)
        """Whether the process got the priority that keeps its stamps true under load."""

    def read(self) -> tuple[int, bytes]:
        """The next bytes that arrived, and when, in ns of CLOCK_MONOTONIC.

        Raises ConnectionError with the reason when the console is lost, or was closed.
        """
        while True:
            if len(self._buffer) >= _HEADER.size:
                stamp, length = _HEADER.unpack_from(self._buffer)
                end = _HEADER.size + length
                if len(self._buffer) >= end:
                    data = bytes(self._buffer[_HEADER.size : end])
                    del self._buffer[:end]
                    return stamp, data
            more = os.read(self._output, 1 << 20)
            if not more:
                raise ConnectionError(self._last_words())
            self._buffer += more

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises OSError when the process is gone."""
        while data:
            data = data[os.write(self._input, data) :]

    def close(self) -> None:
        """End the process, and with it the connection; a `read` in another thread raises."""
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        assert self._process.stderr
        said = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return said[-1] if said else "the console was closed"


def main(protocol: str, place: str, port: str, baud: str, timeout_s: str) -> int:
    """Be the process; see the module's docstring."""
    real_time = 0
    with contextlib.suppress(OSError, AttributeError):  # not allowed, or not on this system
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        real_time = 1
    try:
        transport = connect(protocol, place, int(port), int(baud), float(timeout_s))
        threading.Thread(target=_pass_input, args=(transport,), daemon=True).start()
        _send(real_time, b"")
        while True:
            data = transport.read()
            stamp = time.monotonic_ns()
            if data:
                _send(stamp, data)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _send(stamp: int, data: bytes) -> None:
    frame = _HEADER.pack(stamp, len(data)) + data
    while frame:
        frame = frame[os.write(sys.stdout.fileno(), frame) :]


def _pass_input(transport: Transport) -> None:
    # A write that fails shows in the reading thread too; the end of input is the end of all.
    with contextlib.suppress(OSError):
        while data := os.read(sys.stdin.fileno(), 65536):
            transport.write(data)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
