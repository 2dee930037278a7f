"""The wire under a console: a raw TCP stream, or anything that pyserial can open."""

from __future__ import annotations

import contextlib
import socket
from typing import Protocol

from evmperf.model.errors import LabError

_POLL_S = 0.2
"""How long a blocking read of pyserial may keep a closing console waiting, in seconds."""


class Transport(Protocol):
    """Bytes to and from the board. `read` blocks and returns b"" when nothing came for a while.

    A lost connection is an OSError (of which ConnectionError and SerialException are kinds).
    """

    def read(self) -> bytes:
        """Whatever arrived, at least one byte unless nothing came."""

    def write(self, data: bytes) -> None:
        """Send all of `data`."""


class RawTcp:
    """A raw TCP stream, as ser2net and terminal servers give it."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A terminal server that lost power says nothing: without this we would wait for ever.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            with contextlib.suppress(AttributeError):  # not every system has all three
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def read(self) -> bytes:
        """Whatever arrived."""
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionResetError("closed by the console server")
        return data

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        self._socket.sendall(data)


class Pyserial:
    """A local serial port, or RFC 2217 over the network, through pyserial."""

    def __init__(self, url: str, baud: int) -> None:
        import serial  # noqa: PLC0415  # slow to import, and most virtual boards do not need it

        self._serial = serial.serial_for_url(url, do_not_open=True)
        self._serial.baudrate = baud
        self._serial.timeout = _POLL_S
        self._serial.open()

    def read(self) -> bytes:
        """Whatever arrived."""
        first: bytes = self._serial.read(1)
        waiting = self._serial.in_waiting if first else 0
        return first + self._serial.read(waiting) if waiting else first

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        self._serial.write(data)


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
            url = f"rfc2217://{where}?ign_set_control&timeout={timeout_s:g}"
            return Pyserial(url, baud)
        if protocol == "serial":
            return Pyserial(place, baud)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LabError(
            f"the console at {where} cannot be opened ({reason}): check that the console server "
            f"runs and that the board file names the right port"
        ) from error
    raise LabError(f"the console at {where} has the unknown protocol {protocol!r}")
