"""The wire under a console: a raw TCP stream, RFC 2217 over TCP, or a local serial port.

Each has a file descriptor to wait on, so that the process that stamps knows when it last looked
and found nothing: this is what bounds the error of its stamps.
"""

import contextlib
import os
import re
import select
import socket
import struct
import time
import tty
from typing import Any

from evmperf.model.errors import LabError

_SOCKET_BYTES = 65536
_WINDOW = 4
"""Segments that a server sends before an acknowledgement, at least: BBR's window while it probes the round
trip (BBRMinPipeCwnd of draft-cardwell-iccrg-bbr-congestion-control); others begin with 10 (RFC 6928).
"""
_TCP_INFO_BYTES, _DATA_SEGMENTS = 160, 152
"""Size of struct tcp_info and offset of tcpi_data_segs_in there (Linux, include/uapi/linux/tcp.h)."""
ALL = 1 << 63
"""Later than any time in ns."""
_TTY_BYTES = 4095
"""What one read of a terminal device gives at most (the kernel's N_TTY buffer)."""

_SE, _SB, _WILL, _WONT, _DO, _DONT, _IAC = 240, 250, 251, 252, 253, 254, 255
_COM_PORT = 44
_OURS = (0, 3, _COM_PORT)
"""Options that both sides shall have (binary, suppress go-ahead, COM port); every other is declined."""
_SET_BAUDRATE, _FROM_SERVER = 1, 100
"""A command of RFC 2217, and what a server adds to a command's number when it answers."""
_SETTINGS = {2: 8, 3: 1, 4: 1, 5: 1}
"""Further commands: data size, parity (none), stop bits, and flow control (none)."""

_LARGEST = 4096
"""Bytes of the longest subnegotiation that is kept; a longer one is no RFC 2217."""

_COMMAND = re.compile(
    rb"\xff(?:(\xff)|\xfa((?:[^\xff]|\xff[^\xf0])*)\xff\xf0|([\xfb-\xfe])(.)|[^\xfa-\xff])|(\xff.*)",
    re.DOTALL,
)
"""A byte 255 of the board, a subnegotiation, a verb with its option, another command; else one whose rest
has not come yet."""


class RawTcp:
    """A raw TCP stream, as ser2net and terminal servers give it; a lost connection is an OSError."""

    more = False
    """Whether the last `read` may have left something behind, here or with a server that waits for us."""
    early_output = b""
    """What came from the board while the connection was being set up."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A terminal server that lost power says nothing: without this we would wait for ever.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self._segments = 0
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Acknowledge at once what was read: a server with Nagle's algorithm (ser2net's RFC 2217) keeps what
        the board says next until then, which is 40 ms by default. Linux forgets the option after a while.
        """
        with contextlib.suppress(AttributeError, OSError):  # not on every system
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def fileno(self) -> int:
        """The socket."""
        return self._socket.fileno()

    def read(self) -> bytes:
        """What has arrived; call it when there is something. b"" when none of it is the board's."""
        data = self._socket.recv(_SOCKET_BYTES)
        if not data:
            raise ConnectionResetError("closed by the console server")
        self._acknowledge()
        # Single bytes in segments of their own soon fill the window, and the server keeps the next ones
        # until our acknowledgement.
        before, self._segments = self._segments, self._segments_received()
        self.more = len(data) == _SOCKET_BYTES or self._segments - before >= _WINDOW
        return data

    def _segments_received(self) -> int:
        """Segments with data so far; 0 on a system that does not tell."""
        with contextlib.suppress(AttributeError, OSError, struct.error):
            told = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            return int(struct.unpack_from("=I", told, _DATA_SEGMENTS)[0])
        return 0

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        self._socket.sendall(data)

    def settled_ns(self) -> int:
        """Until when (CLOCK_MONOTONIC, ns) what had reached this machine can be read by now: `ALL`, as a
        network's interrupt brings what it received to the socket itself.
        """
        return ALL


class ComPort:
    """The client of Telnet with the COM port control option (RFC 854, RFC 855, RFC 2217): what of the stream
    is Telnet's, and what to answer.
    """

    def __init__(self, baud: int) -> None:
        self.speed = 0
        """The baud rate that the server has confirmed, 0 before."""
        self.refused = False
        """Whether the server has said that it does not know the option."""
        self._baud = baud
        self._pending = b""

    def greeting(self) -> bytes:
        """What to send first: the options, and the line's settings (8N1, no flow control)."""
        settings = {_SET_BAUDRATE: self._baud.to_bytes(4, "big")}
        settings |= {number: bytes((value,)) for number, value in _SETTINGS.items()}
        return b"".join(bytes((_IAC, verb, option)) for verb in (_WILL, _DO) for option in _OURS) + b"".join(
            bytes((_IAC, _SB, _COM_PORT, number)) + self.escaped(value) + bytes((_IAC, _SE))
            for number, value in settings.items()
        )

    def await_speed(self, connection: socket.socket, timeout_s: float) -> bytes:
        """Read until the server confirms the baud rate; returns the board's output. Raises OSError."""
        output = b""
        deadline = time.monotonic() + timeout_s
        while not self.speed:
            left = deadline - time.monotonic()
            if self.refused or left <= 0 or not select.select([connection], [], [], left)[0]:
                raise OSError("it does not speak RFC 2217")
            data = connection.recv(65536)
            if not data:
                raise ConnectionResetError("closed by the console server")
            board, answer = self.take(data)
            output += board
            connection.sendall(answer)
        return output

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Bytes from the wire as (what the board said, what to answer the server)."""
        if not self._pending and b"\xff" not in data:
            return data, b""
        stream, self._pending, answer = self._pending + data, b"", bytearray()

        def carry_out(match: re.Match[bytes]) -> bytes:
            escaped, settings, verb, option, rest = match.groups()
            if settings is not None:
                setting = settings.replace(b"\xff\xff", b"\xff")
                if setting[:2] == bytes((_COM_PORT, _SET_BAUDRATE + _FROM_SERVER)) and len(setting) >= 6:
                    # A server that does not know the port's speed says 0 or leaves ours as it is.
                    self.speed = int.from_bytes(setting[2:6], "big") or self._baud
            elif verb:
                self.refused |= (verb[0], option[0]) == (_DONT, _COM_PORT)
                if verb[0] in (_WILL, _DO) and option[0] not in _OURS:
                    # No reply to the reply to our offers and requests, or it would not end.
                    answer.extend((_IAC, _DONT if verb[0] == _WILL else _WONT, option[0]))
            elif rest and len(rest) < _LARGEST:
                self._pending = rest
            return escaped or b""

        return _COMMAND.sub(carry_out, stream), bytes(answer)

    @staticmethod
    def escaped(data: bytes) -> bytes:
        """Bytes for the board as they go over the wire."""
        return data.replace(b"\xff", b"\xff\xff")


class Rfc2217(RawTcp):
    """A serial port behind Telnet with the COM port option, as labgrid-exporter's ser2net is.

    pyserial has a client, too, but a thread of its own reads the socket there and hands over byte by
    byte: when it last looked, which bounds the error of a time stamp, cannot be told.
    """

    def __init__(self, host: str, port: int, baud: int, timeout_s: float) -> None:
        super().__init__(host, port, timeout_s)
        self._telnet = ComPort(baud)
        super().write(self._telnet.greeting())
        self.early_output = self._telnet.await_speed(self._socket, timeout_s)
        self._acknowledge()

    def read(self) -> bytes:
        """Whatever arrived, without what is Telnet's."""
        data, answer = self._telnet.take(super().read())
        if answer:
            super().write(answer)
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        super().write(self._telnet.escaped(data))


class Sentinel:
    """A byte that is always on its way through the kernel's terminal layer.

    A port's interrupt puts bytes into a buffer, and a kernel thread without real-time priority brings
    them to where they can be read (Linux, drivers/tty/tty_buffer.c: flush_to_ldisc on a work queue).
    While every core is busy that thread waits, and nobody who reads can see for how long. A byte
    through a terminal of our own, which takes the same queue, tells.
    """

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._slave, False)
        self._settled_ns = self._send()

    def settled_ns(self) -> int:
        """Until when (CLOCK_MONOTONIC, ns) what a port had received by then can be read by now."""
        try:
            os.read(self._slave, 16)
        except BlockingIOError:
            return self._settled_ns
        self._settled_ns = self._sent_ns
        self._send()
        return self._settled_ns

    def _send(self) -> int:
        self._sent_ns = time.monotonic_ns()
        os.write(self._master, b".")
        return self._sent_ns


class LocalSerial:
    """A serial device of this machine."""

    more = False
    early_output = b""

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


Transport = RawTcp | LocalSerial


def connect(protocol: str, place: str, port: int, baud: int, timeout_s: float) -> Transport:
    """Open a console; raises LabError. `protocol` is Labgrid's: `raw`, `rfc2217`, or `serial` for a local
    device named by `place`, for which `port` means nothing.
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
