"""Boards that say at what time they say what: the measure of every console's stamps."""

import ast
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from evmperf.boards.console.record import ConsoleRecord, bounded
from evmperf.lab.stamper import StampedPort
from selftests.support.ports import free_port

MS = 1_000_000
WIRES = ("raw", "pty", "ser2net", "rfc2217")
"""How a talking board is reached: raw TCP, a pseudo terminal, and ser2net's two ways on one."""
BAUD = 115200
_OPEN_S = 30.0
_PRIORITY = 2  # above the stamping process: what is measured is that one

_BOARD = """
import os, pty, socket, sys, time, tty
wire = sys.argv[1]
if wire == "raw":
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[6]))]
    print(*[server.getsockname()[1] for server in servers], flush=True)
    lines = [server.accept()[0] for server in servers]
    for line in lines: line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    outs = [line.fileno() for line in lines]
else:
    out, terminal = pty.openpty()
    outs = [out]
    tty.setraw(terminal)
    print(os.ttyname(terminal), flush=True)
try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[5])))
except OSError: pass
pieces, size, pause_ns = map(int, sys.argv[2:5])
sys.stdin.readline()
begin, said = time.monotonic_ns(), [[] for _ in outs]
for number in range(pieces):
    wait = begin + number * pause_ns - time.monotonic_ns()
    if wait > 0: time.sleep(wait / 1e9)
    for out, times in zip(outs, said):
        before = time.monotonic_ns()
        assert os.write(out, b"x" * size) == size
        times.append((before, time.monotonic_ns()))
for times in said: print(times, flush=True)
sys.stdin.readline()
"""

Frame = tuple[int, int, bytes]


class TalkingBoard:
    """Says so many pieces of `size` bytes, one each `pause_ns`, once it is told to go. Over raw TCP
    `count` boards do, in one process: in a lab each has a processor of its own.
    """

    def __init__(self, wire, pieces, size, pause_ns, *, baud=BAUD, count=1):
        self._baud = baud
        self.length, self._size = pieces * size, size
        self._stack = contextlib.ExitStack()
        arguments = [str(n) for n in (pieces, size, pause_ns, _PRIORITY, count)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOARD, wire, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._stack.callback(self._process.wait)
        self._stack.callback(self._process.kill)
        try:
            assert self._process.stdout
            self.ports = []
            for place in self._process.stdout.readline().decode().split():
                self.ports.append(self._open(wire, place))
                self._stack.callback(self.ports[-1].close)
            self.port = self.ports[0]
        except BaseException:
            self.close()
            raise

    def _open(self, wire, place):
        if wire == "raw":
            return StampedPort("raw", "127.0.0.1", int(place), self._baud, _OPEN_S)
        if wire == "pty":
            return StampedPort("serial", place, 0, self._baud, _OPEN_S)
        number = self._stack.enter_context(ser2net(place, telnet=wire == "rfc2217"))
        protocol = "rfc2217" if wire == "rfc2217" else "raw"
        return StampedPort(protocol, "127.0.0.1", number, self._baud, _OPEN_S)

    def go(self):
        """Let it talk."""
        assert self._process.stdin
        self._process.stdin.write(b"\n")

    def frames(self, deadline_s=60.0, number=0):
        """All frames of what it, or one of several, says."""
        frames: list[Frame] = []
        port = self.ports[number]
        guard = threading.Timer(deadline_s, port.close)
        guard.start()
        left = self.length
        while left:
            frames.append(port.read())
            left -= len(frames[-1][2])
        guard.cancel()
        return frames

    def said(self):
        """When each byte was said, before and after, once all is said; then those of the next."""
        assert self._process.stdout
        times = ast.literal_eval(self._process.stdout.readline().decode())
        return [pair for pair in times for _ in range(self._size)]

    def close(self):
        """End it and all around it."""
        self._stack.close()


def ser2net_program():
    """Where Debian's ser2net is, None where it is not installed."""
    return shutil.which("ser2net", path=f"{os.environ['PATH']}:/usr/sbin")


@contextlib.contextmanager
def ser2net(device, *, telnet):
    """ser2net on a terminal, with RFC 2217 or raw; gives its port. It runs before other programs,
    where that is allowed: in a lab it has a machine of its own.
    """
    program = ser2net_program()
    assert program, "ser2net is not installed"
    number = free_port()
    accepter = "telnet(rfc2217),tcp" if telnet else "tcp"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "ser2net.yaml")
        config.write_text(
            f"connection: &board\n"
            f"  accepter: {accepter},127.0.0.1,{number}\n"
            f"  connector: serialdev,{device},{BAUD}n81,local\n"
            f"  options:\n"
            f"    kickolduser: true\n"
            f"    chardelay: false\n"
        )
        process = subprocess.Popen(
            [program, "-n", "-c", str(config)],
            stderr=subprocess.DEVNULL,  # it laments mDNS
        )
        try:
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(_PRIORITY))
            deadline = time.monotonic() + 10
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", number)):
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError("ser2net does not listen")
                time.sleep(0.05)
            yield number
        finally:
            process.kill()
            process.wait()


def as_marks(frames, wire):
    """The frames of a board behind such a wire with the bounds that a mark gets from them."""
    protocol = {"pty": "serial", "ser2net": "raw"}.get(wire, wire)
    records = [ConsoleRecord(stamp, stamp, "<", data, bound) for stamp, bound, data in frames]
    return [(r.mono_ns, r.bound_ns, r.data) for r in bounded(records, protocol, BAUD)]


def delays_ms(frames, said):
    """By how many ms each byte was stamped later than it was said."""
    at, delays = 0, []
    for stamp, _, data in frames:
        delays += [(stamp - after) / MS for _, after in said[at : at + len(data)]]
        at += len(data)
    return delays


def bounds_ms(frames):
    """The bound of each byte in ms."""
    return [bound / MS for _, bound, data in frames for _ in data]


def outside(frames, said, kernel_ns=0):
    """How many bytes were not said within the bound of their frame and `kernel_ns`, a busy kernel's delay."""
    at, wrong = 0, 0
    for stamp, bound, data in frames:
        times = said[at : at + len(data)]
        wrong += sum(not (before <= stamp and stamp - bound - kernel_ns <= after) for before, after in times)
        at += len(data)
    return wrong
