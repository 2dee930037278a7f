"""The console alone, with a pair of sockets in the place of QEMU's serial line."""

import asyncio
import socket
from contextlib import asynccontextmanager
from pathlib import Path

from evmperf_virtual import console as consoles
from evmperf_virtual.console import ConsoleServer

from selftests.support.stamps import read_stamps

MIB = 1 << 20
LAST = b"Kernel panic"


@asynccontextmanager
async def opened(path):
    """A console with a board attached: the console, the board's end of the line, the TCP port."""
    console = ConsoleServer(path)
    port = await console.listen(0)
    ours, board = socket.socketpair()
    ours.setblocking(False)
    await console.attach(ours)
    try:
        yield console, board, port
    finally:
        board.close()
        await console.detach()
        await console.close()


async def accepted(console, count):
    async with asyncio.timeout(10):
        while len(console.clients) != count:
            await asyncio.sleep(0)


def pump(source, sink, text):
    """Send the text piece by piece, each only when the one before has come out at the other end."""
    received = bytearray()
    for start in range(0, len(text), MIB // 4):
        piece = text[start : start + MIB // 4]
        source.sendall(piece)
        while len(received) < start + len(piece):
            data = sink.recv(MIB)
            assert data, "the client that reads was dropped"
            received += data
    return bytes(received)


def test_client_that_does_not_read_stalls_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(consoles, "OUTPUT_LIMIT", 4 * MIB)
    text = bytes(range(256)) * (32 * MIB // 256)

    async def run():
        async with opened(tmp_path / "stamps") as (console, board, port):
            lazy = socket.create_connection(("127.0.0.1", port))
            keen = socket.create_connection(("127.0.0.1", port), timeout=30)
            await accepted(console, 2)
            received = await asyncio.to_thread(pump, board, keen, text)
            await accepted(console, 1)
            keen.close()
            lazy.close()
            return received, console.stamps.offset

    received, offset = asyncio.run(run())
    assert received == text
    assert offset == len(text)
    chunks = read_stamps(tmp_path / "stamps")
    assert sum(chunk[1] for chunk in chunks) == len(text)


def heard(path, talk):
    """The last bytes that a client gets of a board of which `talk` has the end of the line."""

    async def run():
        async with opened(path) as (console, board, port), asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await accepted(console, 1)
            await talk(console, board, writer)
            return await reader.readexactly(len(LAST))

    return asyncio.run(run())


def test_guest_that_does_not_read_loses_input_and_stalls_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(consoles, "INPUT_LIMIT", MIB)

    async def type_much(_, board, writer):
        writer.write(b"x" * (8 * MIB))
        await writer.drain()
        board.sendall(LAST)

    assert heard(tmp_path / "stamps", type_much) == LAST


def test_last_output_before_the_end_is_passed_on(tmp_path):
    async def end(console, board, _):
        board.sendall(LAST)
        board.close()
        await console.detach()

    assert heard(tmp_path / "stamps", end) == LAST


def test_full_disk_ends_the_stamps_and_not_the_console():
    async def go_on(console, board, _):
        board.sendall(LAST[:1])
        while not console.stamps.offset:
            await asyncio.sleep(0)
        console.stamps.flush()
        board.sendall(LAST[1:])

    assert heard(Path("/dev/full"), go_on) == LAST
