"""The reference for what goes over a console: a socket, a receive loop, and nothing else."""

from __future__ import annotations

import re
import shlex
import socket
import time
from collections.abc import Callable
from typing import Any

from labgrid.util import gen_marker

_LONGEST_S = 300.0
_QUIET_S = 0.01


class RawShell:
    """The dialogue of EvmShellDriver over a bare socket, for a shell that is logged in."""

    def __init__(self, port: int, prompt: str) -> None:
        self._prompt = re.compile(prompt.encode())
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_LONGEST_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def drain(self) -> None:
        """Take what others caused, until it is quiet."""
        self._socket.settimeout(_QUIET_S)
        try:
            while self._socket.recv(1 << 20):
                pass
        except TimeoutError:
            pass
        self._socket.settimeout(_LONGEST_S)

    def run(self, command: str) -> int:
        """Run a command, wait for its end and the prompt; returns how many bytes came."""
        marker = gen_marker()
        line = f"MARKER='{marker[:4]}''{marker[4:]}' run {shlex.quote(command)}\n"
        self._socket.sendall(line.encode())
        end = re.compile(rb"%s \d+\r?\n" % marker.encode())
        pieces: list[bytes] = []
        tail, length = b"", 0
        while True:
            data = self._socket.recv(1 << 16)
            pieces.append(data)
            length += len(data)
            tail = tail[-4096:] + data
            if (match := end.search(tail)) and self._prompt.search(tail, match.end()):
                return length

    def close(self) -> None:
        self._socket.close()


def drain(console: Any) -> None:
    """Let a console driver forget what others caused; call it when the line is quiet."""
    time.sleep(_QUIET_S)
    console.drop_input()


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
