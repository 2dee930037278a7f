"""Talking to an InfluxDB 2.x server, with errors that say what to do."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evmperf.model.errors import LabError
from evmperf.publish.influx.config import Config, variable

if TYPE_CHECKING:
    from influxdb_client.client.flux_table import FluxRecord
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.rest import ApiException
    from urllib3.connectionpool import HTTPConnectionPool

_TIMEOUT_S = 20.0
_WHOLE = 3
"""Times that timeout for a whole request and its answer: bytes may come all the time."""
_MOST_REFUSED = 100
"""Points refused one by one before the server is taken to refuse them all."""
_LATER = "waiting points are sent next time"
_LARGE = 1 << 14
"""Bytes that a proxy may call too large; one that does so with less lets nothing by."""


class StoreError(LabError):
    """The server did not take or give what was asked; nothing is lost, it waits on the disk."""


class _BadPoints(StoreError):
    """The server found fault with points of a batch, not with us."""


class _TooLarge(_BadPoints):
    """It, or a proxy, finds a request too large."""


class Store:
    """One bucket. Use as a context manager, or close it."""

    def __init__(self, config: Config, timeout_s: float = _TIMEOUT_S) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415  # slow to import

        self.config = config
        self._timeout_s = timeout_s
        self._client: InfluxDBClient = InfluxDBClient(
            config.url, config.token, org=config.org, timeout=int(timeout_s * 1000)
        )
        self._rest: Any = self._client.api_client.rest_client
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._rest.pool_manager.pool_classes_by_scheme = _pools(self._sockets)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()  # type: ignore[no-untyped-call]  # the client is not typed

    def cut(self) -> None:
        """End what is under way in any thread."""
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def write(self, lines: Sequence[str]) -> list[tuple[str, str]]:
        """Store lines, even again; returns the refused ones with their reasons. Raises StoreError."""
        refused: list[tuple[str, str]] = []
        parts = [lines]
        while parts:
            part = parts.pop()
            try:
                self._post(part)
            except _BadPoints as error:
                if isinstance(error, _TooLarge) and sum(map(len, part)) < _LARGE:
                    raise
                if len(part) == 1:
                    refused.append((part[0], str(error)))
                else:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                if len(refused) > _MOST_REFUSED:
                    raise StoreError(f"{error}; more than {_MOST_REFUSED} points are refused") from None
        return refused

    def _post(self, lines: Sequence[str]) -> None:
        config = self.config
        with self._asking():
            reply = self._rest.request(
                "POST",
                f"{config.url}/api/v2/write",
                query_params=[("org", config.org), ("bucket", config.bucket), ("precision", "ns")],
                headers={
                    "Authorization": f"Token {config.token}",
                    "Content-Type": "text/plain; charset=utf-8",
                },
                body="\n".join(lines).encode(),
                _preload_content=False,
            )
            with contextlib.closing(reply):
                if reply.status != 204:
                    raise self._no_influxdb(f"{reply.status} where it should be 204")
                reply.release_conn()

    def query(self, flux: str, **values: object) -> Iterator[FluxRecord]:
        """The rows of a query with `params.NAME` in `flux`, one by one; raises StoreError."""
        from influxdb_client.client.flux_csv_parser import (  # noqa: PLC0415
            FluxCsvParser,
            FluxCsvParserException,
            FluxQueryException,
            FluxSerializationMode,
        )

        text = f"params = {_literal({**values, 'bucket': self.config.bucket})}\n{flux}"
        with self._asking():
            api = self._client.query_api()
            reply = api.query_raw(text, dialect=api.default_dialect)
            with contextlib.closing(reply):
                kind = str(reply.headers.get("Content-Type", "none"))
                if not kind.startswith("text/csv"):
                    raise self._no_influxdb(f"type {kind[:60]!r} where it should be text/csv")
                rows = FluxCsvParser(reply, FluxSerializationMode.stream).generator()  # type: ignore[no-untyped-call]
                try:
                    yield from rows
                except FluxQueryException as error:
                    reason = self._without_token(str(error))
                    raise self._failed(f"cannot answer ({reason})", "see its log") from None
                except (FluxCsvParserException, LookupError, ValueError) as error:
                    raise self._no_influxdb(f"rows that are none ({error})") from None

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask within a multiple of the timeout, which is a single read's; raises StoreError for any error."""
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        whole_s, late = _WHOLE * self._timeout_s, threading.Event()

        def cut() -> None:
            late.set()
            self.cut()

        timer = threading.Timer(whole_s, cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except ApiException as error:
            raise self._late(whole_s) if late.is_set() else self._refused(error) from None
        except (HTTPError, StoreError, OSError) as error:
            if late.is_set():
                raise self._late(whole_s) from None
            raise error if isinstance(error, StoreError) else self._unreachable(error) from None
        finally:
            timer.cancel()
        if late.is_set():
            raise self._late(whole_s)  # what ended there may have been cut

    def _failed(self, what: str, remedy: str, kind: type[StoreError] = StoreError) -> StoreError:
        return kind(f"InfluxDB {self.config.url}: {what}: {remedy}")

    def _no_influxdb(self, what: str) -> StoreError:
        foreign = f"the answer is not InfluxDB's, perhaps a proxy's ({what})"
        return self._failed(foreign, f"check {variable('url')} and the proxy; {_LATER}")

    def _late(self, within_s: float, what: str = "complete answer") -> StoreError:
        return self._failed(f"no {what} within {within_s:g} s", f"check the server's load; {_LATER}")

    def _unreachable(self, error: Exception) -> StoreError:
        message = str(error)
        if "timed out" in message:
            return self._late(self._timeout_s, "answer")
        cause = message.rpartition("] ")[2].rstrip("')") or type(error).__name__
        remedy = f"start the server or check {variable('url')}; {_LATER}"
        return self._failed(f"cannot be reached ({cause})", remedy)

    def _refused(self, error: ApiException) -> StoreError:
        status, config = error.status or 0, self.config
        text, is_influxdbs = _server_message(error)
        reason = self._without_token(text)
        kind = StoreError
        if status == 401:
            what = f"refuses the token ({reason})"
            remedy = f"check {variable('token')}, and that it is of organisation {config.org!r}"
        elif status == 403:
            what = f"the token has no right to this ({reason})"
            remedy = f"give it read and write on bucket {config.bucket!r}"
        elif status == 404 and "organization" in reason:
            what = f"knows no organisation {config.org!r} for this token ({reason})"
            remedy = f"check {variable('org')}"
        elif status == 404:
            what = f"finds no bucket {config.bucket!r} in organisation {config.org!r} ({reason})"
            remedy = f"check {variable('bucket')} or create it"
        elif "no space left" in reason or status == 507:
            what = f"the server's disk is full ({reason})"
            remedy = f"make room there; {_LATER}"
        elif status == 413:
            kind, what = _TooLarge, f"even small points are too large for it ({reason})"
            remedy = f"raise the limit of the server or the proxy; {_LATER}"
        elif status in (400, 422) and is_influxdbs:
            kind, what, remedy = _BadPoints, reason, "see docs/results.md for what is stored"
        else:
            what, remedy = f"answers {status} ({reason})", _LATER
        return self._failed(what, remedy, kind)

    def _without_token(self, text: str) -> str:
        return text.replace(self.config.token, "***")


def _server_message(error: ApiException) -> tuple[str, bool]:
    """What the server says, without headers, and whether it is InfluxDB that says so, not a proxy."""
    try:
        body = json.loads(error.body)
        message, own = str(body["message"]), "code" in body
    except (TypeError, ValueError, KeyError):
        message, own = str(error.reason or ""), False
    return " ".join(message.split())[:500], own


def _pools(sockets: weakref.WeakSet[socket.socket]) -> dict[str, type[HTTPConnectionPool]]:
    """urllib3's pools, whose connections note their sockets."""
    from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool  # noqa: PLC0415

    def noting(connection: Any, pool: Any) -> Any:
        def connect(self: Any) -> None:
            connection.connect(self)
            sockets.add(self.sock)

        return type(
            pool.__name__, (pool,), {"ConnectionCls": type("Noting", (connection,), {"connect": connect})}
        )

    https = noting(HTTPSConnection, HTTPSConnectionPool)
    return {"http": noting(HTTPConnection, HTTPConnectionPool), "https": https}


def _literal(value: object) -> str:
    """A value as Flux writes it: text, whole number, list, record."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return f'"{text}"'
