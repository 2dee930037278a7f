"""The network power switch of a virtual board: HTTP on 127.0.0.1.

`PUT /power/0` with body `0` or `1` and `GET /power/0` are what Labgrid's NetworkPowerPort with
`model: rest` speaks. `PUT /card/0` and `GET /card/0` with `dut`, `host` or `off` are a card switch.
`GET /status` and `GET /tester` answer with JSON, `POST /stop` ends the bench. An error is one
sentence, as the body and as HTTP's reason phrase, which is all that Labgrid shows.

A thread serves each connection; what it asks for happens in the bench's event loop.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from evmperf.boards.labports import HOST
from evmperf.model.errors import EvmperfError
from evmperf_virtual.console import cannot_open

_TIMEOUT = 10.0
"""Seconds a client has to send its request, and to take the answer."""

Act = Callable[[str, str, str], Coroutine[Any, Any, str]]
_log = logging.getLogger(__name__)


class Refused(Exception):
    """A request that cannot be carried out, with HTTP's status."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class PowerServer(ThreadingTCPServer):
    """Serves one request a connection; that is correct HTTP/1.1 and enough for a power switch.

    `act` carries out a request (method, path, body) in the bench's event loop; it raises Refused or
    EvmperfError. Port 0 is any free one; raises LabError for a busy one.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int, act: Act) -> None:
        self.act, self.timeout = act, 0
        self._loop = asyncio.get_running_loop()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise cannot_open("power", port, error) from None
        self.port = int(self.server_address[1])
        self._loop.add_reader(self.fileno(), self.handle_request)

    def close(self) -> None:
        """Close the port."""
        self._loop.remove_reader(self.fileno())
        self.server_close()

    def wait(self, asked: Coroutine[Any, Any, str]) -> str:
        """The result of a coroutine of the bench."""
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


class _Handler(BaseHTTPRequestHandler):
    server: PowerServer
    timeout = _TIMEOUT
    default_request_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Answer a request."""
        try:
            path = self.path.partition("?")[0]
            answer = self.server.wait(self.server.act(self.command, path, self._body()))
        except Refused as error:
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
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,2}", length):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is one short word, with its Content-Length")
        return self.rfile.read(int(length)).decode("ascii", "replace").strip()

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

    def log_request(self, *_: Any) -> None:
        """Nothing: the bench logs what it does."""
