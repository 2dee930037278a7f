"""A bench instrument on a TCP port that speaks SCPI, and can misbehave."""

import contextlib
import re
import socket
import threading

IDENTITY = "evmperf,Selftest Meter,0815,1.0"
OVERLOAD = "+9.90000000E+37"

_QUERY = re.compile(rb"MEAS(?:URE)?:(VOLT|CURR)(?:\:DC)?\? \(@(\d+)\)")


def scpi(value):
    """A number as instruments print it."""
    return f"{value:+.8E}"


class Instrument:
    """Serves one client at a time.

    `measure` is called with "VOLT" or "CURR" and the channel; it returns the answer's text, None
    for silence, or raises ConnectionError to hang up. Everything asked is kept in `asked`.
    """

    def __init__(self, measure):
        self.measure = measure
        self.asked = []
        self._clients = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.visa = f"TCPIP::127.0.0.1::{self.port}::SOCKET"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # a thread waits in accept
        self._server.close()
        for client in self._clients:
            client.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._clients.append(client)
                with contextlib.suppress(OSError), client, client.makefile("rb") as lines:
                    for line in lines:
                        self._answer(client, line.strip())

    def _answer(self, client, line):
        self.asked.append(line.decode())
        answer = None
        if line == b"*IDN?":
            answer = IDENTITY
        elif match := _QUERY.fullmatch(line):
            answer = self.measure(match.group(1).decode(), int(match.group(2)))
        if answer is not None:
            client.sendall(answer.encode("latin-1") + b"\n")
