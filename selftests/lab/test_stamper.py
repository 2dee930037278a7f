"""The process that stamps a console, over each kind of wire."""

from __future__ import annotations

import os
import pty
import socket
import threading
import time
import tty
from collections.abc import Iterator

import pytest
import serial
import serial.rfc2217

from evmperf.lab.stamper import StampedPort
from evmperf.model.errors import LabError

TIMEOUT_S = 3.0


def read_until(port: StampedPort, expected: bytes) -> list[tuple[int, bytes]]:
    """Frames until `expected` has come; a test that waits for ever is ended by the port's end."""
    frames: list[tuple[int, bytes]] = []
    guard = threading.Timer(20, port.close)
    guard.start()
    try:
        while not b"".join(data for _, data in frames).endswith(expected):
            frames.append(port.read())
    finally:
        guard.cancel()
    return frames


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def open_raw(server: socket.socket) -> tuple[StampedPort, socket.socket]:
    port = StampedPort("raw", "127.0.0.1", server.getsockname()[1], 115200, TIMEOUT_S)
    return port, server.accept()[0]


def test_raw_tcp_carries_both_ways_with_stamps_of_the_arrival(server: socket.socket) -> None:
    port, board = open_raw(server)
    with board:
        before = time.monotonic_ns()
        board.sendall(b"U-Boot 2025.01\r\n")
        frames = read_until(port, b"\r\n")
        after = time.monotonic_ns()
        stamps = [stamp for stamp, _ in frames]
        assert before <= stamps[0] <= stamps[-1] <= after
        port.write(b"\n" * 100_000)
        received = 0
        while received < 100_000:
            received += len(board.recv(65536))
        port.close()


def test_every_byte_value_and_a_large_piece_come_through(server: socket.socket) -> None:
    port, board = open_raw(server)
    payload = bytes(range(256)) * 4096 + b"end"
    with board:
        threading.Thread(target=board.sendall, args=(payload,), daemon=True).start()
        assert b"".join(data for _, data in read_until(port, b"end")) == payload
        port.close()


def test_a_server_that_hangs_up_is_a_lost_connection(server: socket.socket) -> None:
    port, board = open_raw(server)
    board.close()
    with pytest.raises(ConnectionError, match="closed by the console server"):
        port.read()
    port.close()


def test_closing_ends_the_connection(server: socket.socket) -> None:
    port, board = open_raw(server)
    port.close()
    with board:
        board.settimeout(10)
        assert board.recv(1) == b""
    with pytest.raises(OSError, match=r"closed|Broken pipe"):
        port.read()


@pytest.mark.parametrize(
    ("protocol", "place"),
    [("raw", "127.0.0.1"), ("rfc2217", "127.0.0.1"), ("serial", "/dev/evmperf-is-not-there")],
)
def test_a_console_that_cannot_be_opened_is_one_sentence(protocol: str, place: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(LabError, match=f"the console at {place}.* cannot be opened"):
        StampedPort(protocol, place, port, 115200, TIMEOUT_S)


def test_a_local_serial_port_carries_both_ways() -> None:
    board, terminal = pty.openpty()
    tty.setraw(terminal)
    port = StampedPort("serial", os.ttyname(terminal), 0, 115200, TIMEOUT_S)
    os.write(board, b"login: ")
    read_until(port, b"login: ")
    port.write(b"root\n")
    assert os.read(board, 100) == b"root\n"
    port.close()
    os.close(board)
    os.close(terminal)


def test_rfc2217_carries_both_ways(server: socket.socket) -> None:
    loop = serial.serial_for_url("loop://", timeout=0.1)

    def serve() -> None:
        """A terminal server whose serial line sends back what it gets."""
        connection, _ = server.accept()
        with connection, connection.makefile("wb", buffering=0) as out:
            manager = serial.rfc2217.PortManager(loop, out)
            connection.settimeout(0.1)
            while True:
                try:
                    data = connection.recv(1024)
                except TimeoutError:
                    data = None
                except OSError:
                    return
                if data == b"":
                    return
                for byte in manager.filter(data or b""):
                    loop.write(byte)
                waiting = loop.in_waiting
                if waiting:
                    out.write(b"".join(manager.escape(loop.read(waiting))))

    threading.Thread(target=serve, daemon=True).start()
    port = StampedPort("rfc2217", "127.0.0.1", server.getsockname()[1], 115200, TIMEOUT_S)
    port.write(b"echo\xff\n")
    read_until(port, b"echo\xff\n")
    port.close()
