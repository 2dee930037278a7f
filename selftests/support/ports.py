"""TCP ports for servers that selftests start, or that nobody shall answer at."""

import random
import socket

# Below the ports that Linux gives to whoever asks for any (ip_local_port_range). From that range, another
# test's socket may get the port before the server has started, and a program that tries to connect until
# the server is there may be connected with itself.
_PORTS = range(10_000, 32_000)


def free_port():
    """A TCP port of this machine that nobody uses."""
    while True:
        number = random.SystemRandom().choice(_PORTS)
        try:
            with socket.create_server(("127.0.0.1", number)):
                return number
        except OSError:
            continue  # taken
