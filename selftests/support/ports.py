"""TCP ports for servers that selftests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A TCP port of this machine that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
