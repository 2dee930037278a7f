"""The network power switch and the meter of a virtual board: HTTP and SCPI on 127.0.0.1.

`PUT /power/0` with body `0` or `1` and `GET /power/0` are what Labgrid's NetworkPowerPort with
`model: rest` speaks. `PUT /card/0` and `GET /card/0` with `dut`, `host` or `off` are a card switch.
A client whose first line is SCPI talks to the simulated meter instead, which shares the port
so that a board needs no third one. `GET /status` and `GET /tester` answer with JSON, `POST /stop` ends
the bench. An error is one sentence, as the body and as HTTP's reason phrase, which is all that Labgrid shows.

A thread serves each connection; what it asks for happens in the bench's event loop.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

from evmperf.boards.board import VIRTUAL_HOST
from evmperf.model.errors import LabError, UsageError, one_line
from evmperf_virtual.console import cannot_open

_TIMEOUT = 10.0
"""Seconds a client has to send its request, and to take the answer."""

RAILS = ((0.75, 4.88), (1.8, 2.06), (3.29, 2.5), (1.8, 0.56), (1.1, 0.99), (0.74, 0.01), (1.8, 0.01))
"""Volts, and milliwatts at rest, of channels 1 and up."""

_BUSY = 40.0
"""How many times the power at rest a processor takes that is busy."""
_QUERY = re.compile(r"MEAS(?:URE)?:(VOLT|CURR)(?::DC)?\? \(@(\d+)\)")
_IDENTITY = "*IDN?"
_WINDOW_S = 0.2
"""Seconds over which a processor is watched."""
_STALE_S = 1.0
"""Seconds after which a look at the processor says nothing of now."""

Act = Callable[[str, str, str], Coroutine[Any, Any, str]]
_log = logging.getLogger(__name__)


class SimulatedMeter:
    """Answers SCPI lines; `pid` gives QEMU's process, None while the power is off.

    A virtual board has no rails, but the readings follow the board: zero while it is off, low while its
    processor rests, and higher the more CPU time QEMU takes. A board that did not sleep shows it.
    """

    def __init__(self, name: str, pid: Callable[[], int | None]) -> None:
        self._name = name
        self._pid = pid
        self._seen: tuple[int, float, float] | None = None
        self._load = 0.0

    @staticmethod
    def understands(line: str) -> bool:
        """Whether a client's first line is SCPI, not HTTP."""
        return line == _IDENTITY or line.startswith("MEAS")

    async def answer(self, line: str) -> str:
        """The answer to a query, without its end of line; "" for an unknown one: instruments are silent."""
        if line == _IDENTITY:
            return f"evmperf,Virtual Meter,{self._name},1"
        match = _QUERY.fullmatch(line)
        if not match or not 1 <= int(match[2]) <= len(RAILS):
            return ""
        pid = self._pid()
        if pid is None:
            return _number(0.0)
        volts, rest = RAILS[int(match[2]) - 1]
        if match[1] == "VOLT":
            return _number(volts)
        return _number(rest * (1 + _BUSY * await self._share(pid)) / 1000 / volts)

    async def _share(self, pid: int) -> float:
        """Part of one CPU that the process takes, from 0 to 1."""
        now = time.monotonic()
        if self._seen is None or self._seen[0] != pid or now - self._seen[1] > _STALE_S:
            self._seen = (pid, now, _cpu_s(pid))
            await asyncio.sleep(_WINDOW_S)
            now = time.monotonic()
        _, since, before = self._seen
        if now - since >= _WINDOW_S:
            used = _cpu_s(pid)
            self._load = min(max((used - before) / (now - since), 0.0), 1.0)
            self._seen = (pid, now, used)
        return self._load


def _cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has had (proc(5)); 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _number(value: float) -> str:
    return f"{value:+.8E}"


class PowerServer(ThreadingTCPServer):
    """Serves one request a connection; that is correct HTTP/1.1 and enough for a power switch.

    `act` carries out a request (method, path, body) in the bench's event loop; it raises EvmperfError. Port 0
    is any free one; raises LabError for a busy one.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int, act: Act, meter: SimulatedMeter) -> None:
        self.act, self.meter, self.timeout = act, meter, 0
        self._loop = asyncio.get_running_loop()
        try:
            super().__init__((VIRTUAL_HOST, port), _Handler)
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
            if answer := self.server.wait(self.server.meter.answer(_words(line))):
                self.wfile.write(f"{answer}\n".encode())
            line = self.rfile.readline()
        return False

    def do_GET(self) -> None:
        """Answer a request."""
        try:
            path = self.path.partition("?")[0]
            answer = self.server.wait(self.server.act(self.command, path, self._body()))
        except UsageError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001
            # Whatever it is, a power switch must answer.
            _log.error("%s", error, exc_info=not isinstance(error, LabError))
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, one_line(error))
        else:
            self._answer(HTTPStatus.OK, answer)

    do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  # names of http.server

    def _body(self) -> str:
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,2}", length):
            raise UsageError("the body is one short word, with its Content-Length")
        return self.rfile.read(int(length)).decode("ascii", "replace").strip()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request with a sentence; `http.server` does so with a malformed one."""
        self._answer(code, message or HTTPStatus(code).phrase)

    def _answer(self, code: int, text: str) -> None:
        body = text.encode()
        # What was refused is the status line's phrase, too: printable ASCII.
        said = "" if code == HTTPStatus.OK else text
        self.send_response(code, "".join(c if " " <= c <= "~" else " " for c in said)[:300] or None)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: Any) -> None:
        """Nothing: the bench logs what it does."""


def _words(line: bytes) -> str:
    return line.decode("latin-1").rstrip("\r\n")
