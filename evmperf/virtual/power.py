"""The network power switch of a virtual board: HTTP on 127.0.0.1.

`PUT /power/0` with body `0` or `1` and `GET /power/0` are what Labgrid's NetworkPowerPort with
`model: rest` speaks. `PUT /card/0` and `GET /card/0` with `dut`, `host` or `off` are a card switch.
A client whose first line is SCPI talks to the simulated meter (`meter`) instead, which shares the port
so that a board needs no third one. `GET /status` and `GET /tester` answer with JSON, `POST /stop` ends
the bench. An error is one sentence, as the body and as HTTP's reason phrase, which is all that Labgrid shows.

A thread serves each connection; what it asks for happens in the bench's event loop.
"""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Coroutine
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Protocol

from evmperf.model.errors import EvmperfError
from evmperf.virtual.board import CARD, HOST
from evmperf.virtual.console import cannot_open
from evmperf.virtual.meter import SimulatedMeter

_BODY_LIMIT = 1024
_TIMEOUT = 10.0
"""Seconds a client has to send its request, and to take the answer."""

_log = logging.getLogger(__name__)


class _Lab(Protocol):
    """What the power switch acts on: `evmperf.virtual.server.VirtualLab`."""

    @property
    def power(self) -> bool: ...

    @property
    def card(self) -> str: ...

    async def set_power(self, on: bool) -> None: ...

    async def set_card(self, where: str) -> None: ...

    async def tester(self) -> dict[str, Any]: ...

    def status(self) -> dict[str, Any]: ...

    def request_stop(self) -> None: ...


class _HTTPError(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class PowerServer:
    """Serves one request a connection; that is correct HTTP/1.1 and enough for a power switch."""

    def __init__(self, switch: _Lab, meter: SimulatedMeter) -> None:
        self._switch = switch
        self._server: _Server | None = None
        self.meter = meter

    async def listen(self, port: int) -> int:
        """Open the TCP port (0: any free one) and return its number; raises LabError if busy."""
        loop = asyncio.get_running_loop()
        try:
            self._server = server = _Server((HOST, port), _Handler)
        except OSError as error:
            raise cannot_open("power", port, error) from None
        server.power, server.loop, server.timeout = self, loop, 0
        loop.add_reader(server.fileno(), server.handle_request)
        return int(server.server_address[1])

    async def close(self) -> None:
        """Close the port; may be called again."""
        if self._server:
            asyncio.get_running_loop().remove_reader(self._server.fileno())
            self._server.server_close()
            self._server = None

    async def act(self, method: str, path: str, body: str) -> str:
        """Carry out a request; its answer. Raises _HTTPError or EvmperfError."""
        match method, path:
            case "GET", "/power/0":
                answer = "1" if self._switch.power else "0"
            case "PUT", "/power/0":
                if body not in ("0", "1"):
                    raise _HTTPError(HTTPStatus.BAD_REQUEST, "the body must be 0 or 1")
                await self._switch.set_power(body == "1")
                answer = body
            case "GET", "/card/0":
                answer = self._switch.card
            case "PUT", "/card/0":
                if body not in CARD:
                    raise _HTTPError(HTTPStatus.BAD_REQUEST, f"the body is one of {', '.join(CARD)}")
                await self._switch.set_card(body)
                answer = self._switch.card
            case "GET", "/status":
                answer = json.dumps(self._switch.status())
            case "GET", "/tester":
                answer = json.dumps(await self._switch.tester())
            case "POST", "/stop":
                self._switch.request_stop()
                answer = "stopping"
            case _, "/power/0" | "/card/0" | "/status" | "/tester" | "/stop":
                raise _HTTPError(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not for {path}")
            case _:
                reason = "there is only /power/0 (one board, one outlet), /card/0, /status, /tester and /stop"
                raise _HTTPError(HTTPStatus.NOT_FOUND, reason)
        return answer


class _Server(ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    power: PowerServer
    loop: asyncio.AbstractEventLoop

    def wait(self, asked: Coroutine[Any, Any, str]) -> str:
        """The result of a coroutine of the bench."""
        return asyncio.run_coroutine_threadsafe(asked, self.loop).result()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    raw_requestline: bytes
    timeout = _TIMEOUT
    default_request_version = "HTTP/1.0"

    def parse_request(self) -> bool:
        """Read the head of a request. SCPI is answered until the client hangs up, silent as it may be."""
        line = self.raw_requestline
        if not SimulatedMeter.understands(_words(line)):
            return super().parse_request()
        self.connection.settimeout(None)
        while line:
            if answer := self.server.wait(self.server.power.meter.answer(_words(line))):
                self.wfile.write(f"{answer}\n".encode())
            line = self.rfile.readline()
        return False

    def do_GET(self) -> None:
        """Answer a request."""
        try:
            path = self.path.partition("?")[0]
            answer = self.server.wait(self.server.power.act(self.command, path, self._body()))
        except _HTTPError as error:
            self.send_error(error.status, str(error))
        except EvmperfError as error:
            _log.error("%s", error)
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), str(error))
        except Exception as error:  # noqa: BLE001
            # Whatever it is, a power switch must answer.
            _log.exception("request failed")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"error in the bench: {error!r}")
        else:
            self._answer(HTTPStatus.OK, answer)

    do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  # names of http.server

    def _body(self) -> str:
        if "Transfer-Encoding" in self.headers:
            raise _HTTPError(HTTPStatus.NOT_IMPLEMENTED, "send the body with Content-Length")
        said, *others = {*self.headers.get_all("Content-Length", ["0"])}
        if others or self.headers.defects or not (said.isascii() and said.isdigit()):
            raise _HTTPError(HTTPStatus.BAD_REQUEST, "a header line is malformed")
        if len(said) > 9 or int(said) > _BODY_LIMIT:
            raise _HTTPError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is one character: 0 or 1")
        body = self.rfile.read(int(said))
        if len(body) < int(said):
            raise _HTTPError(HTTPStatus.BAD_REQUEST, "the body is cut short")
        return body.decode("ascii", "replace").strip()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request with a sentence; `http.server` does so with a malformed one."""
        self._answer(code, message or HTTPStatus(code).phrase)

    def _answer(self, code: int, text: str, phrase: str = "") -> None:
        body = text.encode()
        # Fit for a status line: printable ASCII.
        self.send_response(code, "".join(c if " " <= c <= "~" else " " for c in phrase)[:300] or None)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def finish(self) -> None:
        """Close the connection with its input read: closed with the rest unread, the answer may be lost."""
        super().finish()
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            while self.connection.recv(65536):
                pass

    def log_request(self, *_: Any) -> None:
        """Nothing: the bench logs what it does."""


def _words(line: bytes) -> str:
    return line.decode("latin-1").rstrip("\r\n")
