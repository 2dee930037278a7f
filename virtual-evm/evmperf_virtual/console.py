"""The serial line of a virtual board as a TCP port: raw bytes, any number of clients.

All clients see all output and all may type. Output that comes while nobody listens is gone, as on
a UART; input is dropped while the board has no power. Every byte is passed on in the same turn of
the event loop in which it was read.

The file `console.stamps` says when each byte left QEMU and when it had been passed on. Others that time
console output (over TCP, through Labgrid) are checked against it. It has one line a chunk: its offset since
the start of the bench and its length in bytes, then both times in nanoseconds of CLOCK_MONOTONIC. The file
is complete up to the last `GET /status` or power off, whichever is later.
"""

import asyncio
import contextlib
import logging
import socket
import time
from pathlib import Path

from evmperf.boards.board import VIRTUAL_HOST
from evmperf.model.errors import LabError

OUTPUT_LIMIT = 16 << 20
"""Bytes kept for a client that does not read; a client with more is disconnected."""
INPUT_LIMIT = 4 << 20
"""Bytes kept for a guest that does not read; more input is lost, as on a UART."""

_log = logging.getLogger(__name__)


class ConsoleStamps:
    """Collects stamps for a file. A full disk costs stamps: the console goes on."""

    def __init__(self, path: Path) -> None:
        self.offset = 0
        """Bytes stamped since the bench started."""
        self._file = path.open("wb", buffering=64 << 10)

    def add(self, length: int, came_ns: int, passed_ns: int) -> None:
        """Note a chunk of `length` bytes that came at `came_ns` and was passed on at `passed_ns`."""
        with contextlib.suppress(OSError):
            self._file.write(b"%d %d %d %d\n" % (self.offset, length, came_ns, passed_ns))
        self.offset += length

    def flush(self) -> None:
        """Write what is pending; takes well below a millisecond."""
        with contextlib.suppress(OSError):
            self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


class ConsoleServer:
    """Joins QEMU's end of the serial line with the TCP clients."""

    def __init__(self, stamps: Path) -> None:
        self.stamps = ConsoleStamps(stamps)
        self.clients: set[_Client] = set()
        self._board: _Board | None = None
        self._server: asyncio.Server | None = None

    async def listen(self, port: int) -> int:
        """Open the TCP port (0: any free one) and return its number; raises LabError if busy."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Client(self), VIRTUAL_HOST, port)
        except OSError as error:
            raise cannot_open("serial", port, error) from None
        return int(self._server.sockets[0].getsockname()[1])

    async def attach(self, line: socket.socket) -> None:
        """Connect a freshly started QEMU's end of the line, which from now on belongs to us."""
        loop = asyncio.get_running_loop()
        _, self._board = await loop.create_connection(lambda: _Board(self), sock=line)

    async def detach(self) -> None:
        """After QEMU is gone: pass on its last bytes, then forget it."""
        if self._board is not None:
            await self._board.closed
            self._board = None
        self.stamps.flush()

    async def close(self) -> None:
        """Close the port, all clients and the file of stamps."""
        if self._server is not None:
            self._server.close()
        for client in list(self.clients):
            client.transport.close()
        self.stamps.close()

    def from_board(self, data: bytes, came_ns: int) -> None:
        """Pass on what QEMU sent."""
        for client in list(self.clients):
            client.send(data)
        self.stamps.add(len(data), came_ns, time.monotonic_ns())

    def from_client(self, data: bytes) -> None:
        """Pass on what a client typed, or drop it while there is no running board."""
        if self._board is not None:
            self._board.send(data)


class _End(asyncio.Protocol):
    """One end of a connection."""

    def __init__(self, console: ConsoleServer) -> None:
        self.console = console
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


class _Board(_End):
    """QEMU's end."""

    def __init__(self, console: ConsoleServer) -> None:
        super().__init__(console)
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._overrun = False

    def data_received(self, data: bytes) -> None:
        self.console.from_board(data, time.monotonic_ns())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def send(self, data: bytes) -> None:
        # Holding clients back instead would leave old input in their sockets for the next boot.
        if self.transport.get_write_buffer_size() + len(data) > INPUT_LIMIT:
            if not self._overrun:
                _log.warning("serial input is lost: the guest does not read it")
            self._overrun = True
            return
        self.transport.write(data)


class _Client(_End):
    """A TCP client's end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        line: socket.socket = transport.get_extra_info("socket")
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = "{}:{}".format(*transport.get_extra_info("peername", ("?", "?"))[:2])
        self.console.clients.add(self)
        _log.info("console client %s connected", self._peer)

    def data_received(self, data: bytes) -> None:
        self.console.from_client(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.console.clients.discard(self)
        _log.info("console client %s disconnected", self._peer)

    def send(self, data: bytes) -> None:
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > OUTPUT_LIMIT:
            _log.warning("console client %s is dropped: it does not read its output", self._peer)
            self.console.clients.discard(self)
            self.transport.abort()


def cannot_open(what: str, port: int, error: OSError) -> LabError:
    """What to say of a port that cannot be opened."""
    return LabError(
        f"the {what} port {VIRTUAL_HOST}:{port} cannot be opened ({error.strerror or error}): "
        f"stop the program that uses it, or choose another port with --{what}-port"
    )
