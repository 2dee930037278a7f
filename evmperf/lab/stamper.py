"""A process that does nothing but read a console and stamp what arrives.

A thread of the measuring process would stamp late: under load it waits for a core and for Python's
interpreter lock, and what arrives meanwhile gets one stamp. This process asks for real-time
priority, which needs root, CAP_SYS_NICE or an rtprio limit, and waits for nobody but the console:
stamped bytes go to a queue, from which a thread writes them to the measuring process whenever that
reads. Of more than `limits.QUEUE_BYTES` the oldest are cut, and how much that was is said.

No stamp is trusted: each comes with the time since this process last knew that nothing was waiting
to be read. All bytes of a frame arrived within it, however long the process was kept from running,
or the kernel kept the bytes of a serial port (`evmperf.lab.transport.Sentinel`).

Protocol: bytes on standard input go to the board. On standard output come frames, each of a header
(stamp in ns of CLOCK_MONOTONIC, bound in ns, length in bytes; little-endian, 64, 64 and 32 bits)
and that many bytes from the board. The first frame is empty; its "stamp" is 1 with real-time
priority and 0 without. A later empty one stands where bytes were cut: its "bound" is how many. A
console that cannot be opened, or is lost, is a sentence on standard error and exit status 1.
"""

import contextlib
import ctypes
import os
import queue
import select
import struct
import subprocess
import sys
import threading
import time

from evmperf.boards.console.record import Line
from evmperf.lab.transport import Transport, connect
from evmperf.model import limits
from evmperf.model.errors import LabError
from evmperf.model.places import for_children

_HEADER = struct.Struct("<QQI")
_PRIORITY = 1
"""Of SCHED_FIFO, the lowest: it is enough to come before everything that is not real-time."""
_LOCK_MEMORY = 7
"""mlockall(2): MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT."""

_LOOK_MS = 2
"""How often an idle console is looked at: it bounds the error of what comes after a silence."""
_PAUSE_S, _LONG_PAUSE_S = 0.0005, 0.0015
"""Pause after each read, so that a record holds some bytes and 32 boards leave a machine usable;
the long one while others that have the priority, too, keep this process from running.
"""
_LATE_S, _CROWDED = 0.001, 500
"""A pause that was longer by so much says so, for so many reads."""
_COLLECT_S, _LONG_COLLECT_S, _FLOW = 0.002, 0.01, 32
"""Pause after passing frames on: what comes meanwhile goes together. The long one after so many
short ones without a gap, when nobody waits for an answer.
"""
_TOGETHER = 1024
"""Frames that go together at most."""
_FRAME_BYTES = 64
"""What a frame takes beside its bytes."""

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
            env=for_children(os.environ),
            # Ctrl-C is for the measuring process; this one ends when its input does.
            start_new_session=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        self._buffer = bytearray()
        self._line = Line(baud)
        guard = threading.Timer(timeout_s + _START_S, self._process.kill)
        guard.start()
        try:
            real_time, _, _ = self.read()
        except ConnectionError as error:
            self.close()
            raise LabError(str(error)) from None
        finally:
            guard.cancel()
        self.real_time = bool(real_time)
        """Whether the process got the priority that keeps its stamps true under load."""

    def read(self) -> tuple[int, int, bytes]:
        """The next bytes that arrived; when, in ns of CLOCK_MONOTONIC; and how many ns earlier
        they may have arrived at most: since the process last found nothing, or, when they are more
        than the line can have carried since then, for as long as the line needs for them.

        Without bytes, the second number says how many were cut there. Raises ConnectionError with
        the reason when the console is lost, or was closed.
        """
        while True:
            if len(self._buffer) >= _HEADER.size:
                stamp, bound, length = _HEADER.unpack_from(self._buffer)
                end = _HEADER.size + length
                if len(self._buffer) >= end:
                    data = bytes(self._buffer[_HEADER.size : end])
                    del self._buffer[:end]
                    if not data:
                        return stamp, bound, data
                    return stamp, max(bound, self._line.late_ns(stamp, length)), data
            more = os.read(self._output, 1 << 20)
            if not more:
                assert self._process.stderr
                lines = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
                raise ConnectionError(lines[-1] if lines else "the console was closed")
            self._buffer += more

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises OSError when the process is gone."""
        while data:
            data = data[os.write(self._input, data) :]

    def close(self) -> None:
        """End the process, and with it the connection; a `read` in another thread raises."""
        self._process.kill()
        self._process.wait()


class _Frames(queue.SimpleQueue[bytes]):
    """Frames in transit between two threads, `limits.QUEUE_BYTES` at most: the oldest are cut."""

    _coming = _cut = _cut_at = _dropped = _gone = _reported = 0

    def put(self, item: bytes, block: bool = True, timeout: float | None = None) -> None:
        """Put a frame, or the end; where too much waits, half of that is cut."""
        super().put(item, block, timeout)
        self._coming += len(item) + _FRAME_BYTES
        if not item or self._coming - self._gone - self._dropped <= limits.QUEUE_BYTES:
            return
        with contextlib.suppress(queue.Empty):
            while self._coming - self._gone - self._dropped > limits.QUEUE_BYTES // 2:
                old = super().get(block=False)
                self._dropped += len(old) + _FRAME_BYTES
                self._cut_at, *_ = _HEADER.unpack_from(old)
                self._cut += len(old) - _HEADER.size

    def get(self, block: bool = True, timeout: float | None = None) -> bytes:
        """The next frame, or the one that says how much was cut before it."""
        if cut := self._cut - self._reported:
            self._reported += cut
            return _frame(self._cut_at, cut, b"")
        item = super().get(block, timeout)
        self._gone += len(item) + _FRAME_BYTES
        return item


def main(protocol: str, place: str, port: str, baud: str, timeout_s: str) -> int:
    """Be the process; see the module's docstring."""
    began = time.monotonic_ns()
    real_time = be_undisturbed()
    frames = _Frames()
    frames.put(_frame(real_time, 0, b""))
    try:
        transport = connect(protocol, place, int(port), int(baud), float(timeout_s))
        if transport.early_output:
            now = time.monotonic_ns()
            frames.put(_frame(now, now - began, transport.early_output))
        # Both get the priority, too: one that held the interpreter's lock and did not run would
        # keep the reader waiting.
        writer = threading.Thread(target=_pass_output, args=(frames,), daemon=True)
        writer.start()
        threading.Thread(target=_pass_input, args=(transport,), daemon=True).start()
        try:
            _stamp(transport, frames)
        finally:
            frames.put(b"")
            writer.join()  # what came before the loss is still read
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
    return 1


def _stamp(transport: Transport, frames: queue.SimpleQueue[bytes]) -> None:
    """Read and stamp until the console is lost, which is an OSError."""
    waiting = select.poll()
    waiting.register(transport, select.POLLIN)
    emptied = time.monotonic_ns()  # what had arrived by then has been read
    crowded = 0
    while True:
        settled = transport.settled_ns()
        begin = time.monotonic_ns()
        if not waiting.poll(_LOOK_MS):
            emptied = min(begin + _LOOK_MS * 1_000_000, settled)
            continue
        begin = time.monotonic_ns()
        data = transport.read()
        stamp = time.monotonic_ns()
        if data:
            frames.put(_frame(stamp, stamp - emptied, data))
        if not transport.more:
            emptied = min(begin, settled)
            pause = _LONG_PAUSE_S if crowded else _PAUSE_S
            time.sleep(pause)
            late = time.monotonic_ns() - stamp > (pause + _LATE_S) * 1e9
            crowded = _CROWDED if late else max(0, crowded - 1)


def be_undisturbed() -> int:
    """Take real-time priority, and lock what is in memory there; 1 if the priority was given."""
    with contextlib.suppress(OSError, AttributeError):  # refused, or not on this system
        ctypes.CDLL(None).mlockall(_LOCK_MEMORY)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        return 1
    return 0


def _frame(stamp: int, bound: int, data: bytes) -> bytes:
    return _HEADER.pack(stamp, bound, len(data)) + data


def _pass_output(frames: queue.SimpleQueue[bytes]) -> None:
    """Write frames as fast as they are taken; an empty one is the end."""
    # A pipe that nobody reads any more shows as the end of input, too.
    with contextlib.suppress(OSError):
        ended, flow = False, 0
        while not ended:
            flow = 0 if frames.empty() else flow + 1
            waiting = [frames.get()]
            while len(waiting) < _TOGETHER and not frames.empty():
                waiting.append(frames.get())
            ended = not waiting[-1]
            data = b"".join(waiting)
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]
            time.sleep(_LONG_COLLECT_S if flow > _FLOW else _COLLECT_S)


def _pass_input(transport: Transport) -> None:
    # A write that fails shows in the reading thread too; the end of input is the end of all.
    with contextlib.suppress(OSError):
        while data := os.read(sys.stdin.fileno(), 65536):
            transport.write(data)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
