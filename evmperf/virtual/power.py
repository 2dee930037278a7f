"""The network power switch of a virtual board: HTTP on 127.0.0.1.

`PUT /power/0` with body `0` or `1` and `GET /power/0` are what Labgrid's NetworkPowerPort with
`model: rest` speaks. `PUT /card/0` and `GET /card/0` with `dut`, `host` or `off` are a card switch.
A client whose first line is SCPI talks to the simulated meter (`meter`) instead.
`GET /status` answers with JSON, `POST /stop` ends the bench. An error is one
sentence, as the body and as HTTP's reason phrase, because that is all Labgrid shows of it.

HTTP is parsed here because Python's own server needs threads, beside which QEMU cannot be started
safely (`machine` uses preexec_fn), and no server for asyncio is among the dependencies. The meter
shares the port so that a board needs no third one.
"""

import asyncio
import contextlib
import json
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

from evmperf.model.errors import EvmperfError
from evmperf.virtual.board import CARD, HOST
from evmperf.virtual.console import listen, port_of
from evmperf.virtual.meter import SimulatedMeter

_LINE_LIMIT = 8192
_HEADER_LIMIT = 64
_BODY_LIMIT = 1024
_TIMEOUT = 10.0
"""Seconds a client has to send its request."""

_log = logging.getLogger(__name__)


class PowerSwitch(Protocol):
    """What the power switch acts on."""

    @property
    def power(self) -> bool:
        """Whether the power is on."""

    async def set_power(self, on: bool) -> None:
        """Switch; raises EvmperfError if the board does not start."""

    @property
    def card(self) -> str:
        """Where the card is: `dut` (in the board), `host` or `off`."""

    async def set_card(self, where: str) -> None:
        """Move the card; raises EvmperfError while the board is on."""

    def status(self) -> dict[str, Any]:
        """What `GET /status` answers."""

    def request_stop(self) -> None:
        """End the bench soon."""


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: bytes


class _HTTPError(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class PowerServer:
    """Serves one request a connection; that is correct HTTP/1.1 and enough for a power switch."""

    def __init__(self, switch: PowerSwitch, meter: SimulatedMeter) -> None:
        self._switch = switch
        self._meter = meter
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, port: int) -> int:
        """Open the TCP port (0: any free one) and return its number; raises LabError if busy."""
        self._server = await listen(
            asyncio.start_server(self._serve, HOST, port, limit=_LINE_LIMIT), "power", port
        )
        return port_of(self._server)

    async def close(self) -> None:
        """Close the port; answers under way have half a second to get out."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0.5)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, TimeoutError):
            pass  # The client is gone or does not take its answer.
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body, kind = b"", "text/plain; charset=utf-8"
        status, phrase = HTTPStatus.OK, ""
        try:
            line = await asyncio.wait_for(_line(reader), _TIMEOUT)
            if SimulatedMeter.understands(line):
                await self._measure(line, reader, writer)
                return
            request = await asyncio.wait_for(_read(line, reader), _TIMEOUT)
            if request is None:
                return
            body, kind = await self._act(request)
        except TimeoutError:
            status, body = HTTPStatus.REQUEST_TIMEOUT, b"the request did not come to an end\n"
        except _HTTPError as error:
            status, body = error.status, f"{error}\n".encode()
        except EvmperfError as error:
            status, body, phrase = (HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n".encode(), str(error))
            _log.error("%s", error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, a power switch must answer.
            status, phrase = HTTPStatus.INTERNAL_SERVER_ERROR, f"error in the bench: {error!r}"
            body = f"{phrase}\n".encode()
            _log.exception("request failed")
        head = (
            f"HTTP/1.1 {int(status)} {_phrase(phrase) or status.phrase}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii") + body)
        await asyncio.wait_for(writer.drain(), _TIMEOUT)
        # Closing with input unread would reset the connection and may cost the client its answer.
        with contextlib.suppress(OSError, TimeoutError):
            writer.write_eof()
            async with asyncio.timeout(1):
                while await reader.read(65536):
                    pass

    async def _measure(self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer queries until the client hangs up; it may be silent for as long as it likes."""
        while line:
            if answer := await self._meter.answer(line):
                writer.write(f"{answer}\n".encode())
                await asyncio.wait_for(writer.drain(), _TIMEOUT)
            line = await _line(reader)

    async def _act(self, request: _Request) -> tuple[bytes, str]:
        text = "text/plain; charset=utf-8"
        match request.method, request.path:
            case "GET", "/power/0":
                return (b"1" if self._switch.power else b"0"), text
            case "PUT", "/power/0":
                value = request.body.strip()
                if value not in (b"0", b"1"):
                    raise _HTTPError(HTTPStatus.BAD_REQUEST, "the body must be 0 or 1")
                await self._switch.set_power(value == b"1")
                return value, text
            case "GET", "/card/0":
                return self._switch.card.encode(), text
            case "PUT", "/card/0":
                where = request.body.strip().decode("ascii", "replace")
                if where not in CARD:
                    reason = f"the body is one of {', '.join(CARD)}"
                    raise _HTTPError(HTTPStatus.BAD_REQUEST, reason)
                await self._switch.set_card(where)
                return self._switch.card.encode(), text
            case "GET", "/status":
                return json.dumps(self._switch.status()).encode() + b"\n", "application/json"
            case "POST", "/stop":
                self._switch.request_stop()
                return b"stopping\n", text
            case _, "/power/0" | "/card/0" | "/status" | "/stop":
                reason = f"{request.method} is not for {request.path}"
                raise _HTTPError(HTTPStatus.METHOD_NOT_ALLOWED, reason)
        reason = "there is only /power/0 (one board, one outlet), /card/0, /status and /stop"
        raise _HTTPError(HTTPStatus.NOT_FOUND, reason)


async def _read(line: str, reader: asyncio.StreamReader) -> _Request | None:
    """Read a request that begins with this line; None if the client closed without one."""
    if not line:
        return None
    words = line.split(" ")
    if len(words) != 3 or not words[0].isalpha() or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise _HTTPError(HTTPStatus.BAD_REQUEST, "not a request of HTTP/1.1")
    length = ""
    for _ in range(_HEADER_LIMIT):
        header = await _line(reader)
        if not header:
            break
        name, colon, value = header.partition(":")
        if not colon or not name or name != name.strip():
            raise _HTTPError(HTTPStatus.BAD_REQUEST, "a header line is malformed")
        if name.lower() == "transfer-encoding":
            raise _HTTPError(HTTPStatus.NOT_IMPLEMENTED, "send the body with Content-Length")
        if name.lower() == "content-length":
            value = value.strip()
            if length not in ("", value) or not (value.isascii() and value.isdigit()):
                raise _HTTPError(HTTPStatus.BAD_REQUEST, "Content-Length is malformed")
            length = value
    else:
        raise _HTTPError(HTTPStatus.BAD_REQUEST, "too many header lines")
    if len(length) > 9 or int(length or "0") > _BODY_LIMIT:
        raise _HTTPError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is one character: 0 or 1")
    try:
        body = await reader.readexactly(int(length or "0"))
    except asyncio.IncompleteReadError:
        raise _HTTPError(HTTPStatus.BAD_REQUEST, "the body is cut short") from None
    return _Request(words[0], words[1].partition("?")[0], body)


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return ""
        raise _HTTPError(HTTPStatus.BAD_REQUEST, "the request is cut short") from None
    except asyncio.LimitOverrunError:
        raise _HTTPError(HTTPStatus.BAD_REQUEST, "a line is too long") from None
    return line.rstrip(b"\r\n").decode("latin-1")


def _phrase(text: str) -> str:
    """Make a sentence fit for a status line: one line, printable ASCII."""
    return "".join(char if " " <= char <= "~" else " " for char in text)[:300].strip()
