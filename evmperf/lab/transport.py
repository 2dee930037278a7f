"""The wire under a console: a raw TCP stream, RFC 2217 over TCP, or a local serial port.

Each has a file descriptor to wait on, so that the process that stamps knows when it last looked
and found nothing: this is what bounds the error of its stamps.
"""

import contextlib
import os
import socket
from typing import Any, Protocol

from evmperf.lab.rfc2217 import ComPort
from evmperf.lab.sentinel import Sentinel
from evmperf.model.errors import LabError

_SOCKET_BYTES = 65536
ALL = 1 << 63
"""Later than any time in ns."""
_TTY_BYTES = 4095
"""What one read of a terminal device gives at most (the kernel's N_TTY buffer)."""


class Transport(Protocol):
    """Bytes to and from the board; a lost connection is an OSError."""

    more: bool
    """Whether the last `read` may have left something behind."""
    said: bytes
    """What came from the board while the connection was being set up."""

    def fileno(self) -> int:
        """What to wait on for something to read."""

    def read(self) -> bytes:
        """What has arrived; call it when there is something. b"" when none of it is the board's."""

    def write(self, data: bytes) -> None:
        """Send all of `data`."""

    def settled_ns(self) -> int:
        """Until when (CLOCK_MONOTONIC, ns) what had reached this machine can be read by now, `ALL`
        where nothing is kept on its way.
        """


class RawTcp:
    """A raw TCP stream, as ser2net and terminal servers give it."""

    more = False
    said = b""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A terminal server that lost power says nothing: without this we would wait for ever.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            with contextlib.suppress(AttributeError):  # not every system has all three
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def fileno(self) -> int:
        """The socket."""
        return self._socket.fileno()

    def read(self) -> bytes:
        """Whatever arrived."""
        data = self._socket.recv(_SOCKET_BYTES)
        if not data:
            raise ConnectionResetError("closed by the console server")
        self.more = len(data) == _SOCKET_BYTES
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        self._socket.sendall(data)

    def settled_ns(self) -> int:
        """A network's interrupt brings what it received to the socket itself."""
        return ALL


class Rfc2217(RawTcp):
    """A serial port behind Telnet with the COM port option, as labgrid-exporter's ser2net is."""

    def __init__(self, host: str, port: int, baud: int, timeout_s: float) -> None:
        super().__init__(host, port, timeout_s)
        self._telnet = ComPort(baud)
        super().write(self._telnet.greeting())
        self.said = self._telnet.await_speed(self._socket, timeout_s)

    def read(self) -> bytes:
        """Whatever arrived, without what is Telnet's."""
        data, answer = self._telnet.take(super().read())
        if answer:
            super().write(answer)
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        super().write(self._telnet.escaped(data))


class LocalSerial:
    """A serial device of this machine."""

    more = False
    said = b""

    def __init__(self, device: str, baud: int) -> None:
        import serial  # noqa: PLC0415  # slow to import, and networked consoles do not need it

        self._serial: Any = serial.serial_for_url(device, do_not_open=True)
        self._serial.baudrate = baud
        self._serial.timeout = 0
        self._serial.open()
        self._sentinel = Sentinel()

    def fileno(self) -> int:
        """The device."""
        return int(self._serial.fileno())

    def read(self) -> bytes:
        """Whatever arrived."""
        try:
            data = os.read(self.fileno(), _TTY_BYTES + 1)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionResetError("the serial device is gone")
        self.more = len(data) >= _TTY_BYTES
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        self._serial.write(data)

    def settled_ns(self) -> int:
        """As a byte of our own tells."""
        return self._sentinel.settled_ns()


def connect(protocol: str, place: str, port: int, baud: int, timeout_s: float) -> Transport:
    """Open a console; raises LabError in one sentence when it cannot be.

    `protocol` is Labgrid's: `raw`, `rfc2217`, or `serial` for a local device named by `place`,
    for which `port` means nothing.
    """
    where = place if protocol == "serial" else f"{place}:{port}"
    try:
        if protocol == "raw":
            return RawTcp(place, port, timeout_s)
        if protocol == "rfc2217":
            return Rfc2217(place, port, baud, timeout_s)
        if protocol == "serial":
            return LocalSerial(place, baud)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LabError(
            f"the console at {where} cannot be opened ({reason}): check that the console server "
            f"runs and that the board file names the right port"
        ) from error
    raise LabError(f"the console at {where} has the unknown protocol {protocol!r}")
