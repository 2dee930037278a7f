"""Talking to an InfluxDB 2.x server, with errors that say what to do."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from evmperf.model.errors import LabError
from evmperf.publish.influx.config import Config, variable

if TYPE_CHECKING:
    from influxdb_client.client.flux_table import FluxRecord
    from influxdb_client.rest import ApiException
    from urllib3 import Retry

_TIMEOUT_S = 20.0
_WHOLE = 3
"""Times that timeout for a whole request and its answer: bytes may come all the time."""
_TRIES = 4
_PATIENCE_S = 60.0
"""The longest wait before a further try, whatever the server asks for."""
_NO_BUCKET = 4040
"""What 404 is where the organisation is known."""
_AGAIN = (429, 502, 503, 504)
_SHOWN = 300
"""Characters of a refused point in a message."""
_LATER = "waiting points are sent next time"
_DROPPED = re.compile(r"partial write: (?:dropped (\d+) )?(.*?)(?: dropped=(\d+))?$")
"""What InfluxDB says of points that it passed over while it took the others: 2.10 and 2.7 for old ones."""


class StoreError(LabError):
    """The server did not take or give what was asked; nothing is lost, it waits on the disk."""


class _Refused(StoreError):
    """The server found fault with some lines of a request; `reason` says with which."""

    reason = ""


class Store:
    """One bucket. Use as a context manager, or close it; waits up to `patience_s` before a further try."""

    def __init__(
        self, config: Config, timeout_s: float = _TIMEOUT_S, patience_s: float = _PATIENCE_S
    ) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415  # slow to import
        from influxdb_client.service.write_service import WriteService  # noqa: PLC0415

        self.config = config
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._client = InfluxDBClient(
            config.url,
            config.token,
            org=config.org,
            timeout=int(timeout_s * 1000),
            retries=_tries(patience_s),
        )
        self._writing: Any = WriteService(self._client.api_client)  # type: ignore[no-untyped-call]  # not typed

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()  # type: ignore[no-untyped-call]  # the client is not typed

    def start(self, lines: Sequence[str]) -> Future[Counter[str]]:
        """Begin to store lines, even again; `finish` waits for it."""
        future: Future[Counter[str]] = Future()

        def work() -> None:
            try:
                future.set_result(self._post(list(lines)))
            except BaseException as error:  # noqa: BLE001  # it is raised where the answer is waited for
                future.set_exception(error)

        # Nobody has to wait for a daemon at a server that hangs.
        threading.Thread(target=work, daemon=True).start()
        return future

    def finish(self, started: Future[Counter[str]]) -> Counter[str]:
        """Wait until lines are stored; returns the points that are not, by the reason. Raises StoreError."""
        whole_s = _WHOLE * self._timeout_s + (_TRIES - 1) * self._patience_s
        try:
            return started.result(whole_s)
        except TimeoutError:
            raise self._late(whole_s) from None

    def _post(self, lines: list[str]) -> Counter[str]:
        """Post lines, and without those that cannot be parsed once more: the server takes none of them."""
        try:
            self._post_once(lines)
        except _Refused as refused:
            dropped = _DROPPED.search(refused.reason)
            if dropped:
                return Counter({_cause(dropped[2]): int(dropped[1] or dropped[3] or 1)})
            bad = [line for line in lines if f"unable to parse '{line}'" in refused.reason]
            if not bad:
                raise
            rest = [line for line in lines if line not in bad]
            named = Counter(f"cannot be parsed: {line[:_SHOWN]}" for line in bad)
            return named + (self._post(rest) if rest else Counter())
        return Counter()

    def _post_once(self, lines: Sequence[str]) -> None:
        with self._asking():
            _, status, _ = self._writing.post_write_with_http_info(
                self.config.org,
                self.config.bucket,
                "\n".join(lines).encode(),
                precision="ns",
                _return_http_data_only=False,
            )
            if status != 204:
                raise self._no_influxdb(f"{status} where it should be 204")

    def query(self, flux: str, **values: object) -> Iterator[FluxRecord]:
        """The rows of a query with `params.NAME` in `flux`, one by one; raises StoreError."""
        from influxdb_client.client import flux_csv_parser as parser  # noqa: PLC0415  # slow to import

        text = f"params = {_literal({**values, 'bucket': self.config.bucket})}\n{flux}"
        with self._asking():
            rows = self._client.query_api().query_stream(text)
            try:
                yield from rows
            except parser.FluxQueryException as error:
                raise self._failed(
                    f"cannot answer ({self._without_token(str(error))})", "see its log"
                ) from None
            except (parser.FluxCsvParserException, LookupError, ValueError) as error:
                raise self._no_influxdb(f"rows that are none ({error})") from None

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn every error of a request into a StoreError with its remedy, or a _Refused."""
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            yield
        except ApiException as error:
            raise self._refused(error) from None
        except UnicodeError as error:
            raise self._no_influxdb(f"no text: {error}") from None
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from None

    def _failed(self, what: str, remedy: str) -> StoreError:
        return StoreError(f"InfluxDB {self.config.url}: {what}: {remedy}")

    def _no_influxdb(self, what: str) -> StoreError:
        foreign = f"the answer is not InfluxDB's, perhaps a proxy's ({what})"
        return self._failed(foreign, f"check {variable('url')} and the proxy; {_LATER}")

    def _late(self, within_s: float) -> StoreError:
        return self._failed(f"no complete answer within {within_s:g} s", f"check the server's load; {_LATER}")

    def _unreachable(self, error: Exception) -> StoreError:
        message = str(error)
        if "timed out" in message:
            return self._late(self._timeout_s)
        cause = message.rpartition("] ")[2].rstrip("')\"") or type(error).__name__
        return self._failed(
            f"cannot be reached ({cause})", f"start the server or check {variable('url')}; {_LATER}"
        )

    def _refused(self, error: ApiException) -> StoreError:
        status, config = error.status or 0, self.config
        text, is_influxdbs = _server_message(error)
        reason = self._without_token(text)[:500]
        if status in (400, 422) and is_influxdbs:
            refused = _Refused(str(self._failed(reason, "see docs/results.md for what is stored")))
            refused.reason = self._without_token(text)
            return refused
        url, org, bucket = variable("url"), config.org, config.bucket
        if status == 404 and "organization" not in reason:
            status = _NO_BUCKET
        if "no space left" in reason:
            status = 507
        what, remedy = {
            401: ("refuses the token", f"check {variable('token')}, and that it is of organisation {org!r}"),
            403: ("the token has no right to this", f"give it read and write on bucket {bucket!r}"),
            404: (f"knows no organisation {org!r} for this token", f"check {variable('org')}"),
            _NO_BUCKET: (
                f"finds no bucket {bucket!r} in organisation {org!r}",
                f"check {variable('bucket')} or create it",
            ),
            507: ("the server's disk is full", f"make room there; {_LATER}"),
            413: ("a megabyte is too large for it", f"raise the limit of server or proxy; {_LATER}"),
        }.get(status, (f"answers {status}", f"check {url} and the server; {_LATER}"))
        return self._failed(f"{what} ({reason})", remedy)

    def _without_token(self, text: str) -> str:
        return text.replace(self.config.token, "***")


def _tries(patience_s: float) -> Retry:
    """Further tries where the server or a proxy asks for them, after as long as it says, within bounds."""
    from urllib3 import BaseHTTPResponse, Retry  # noqa: PLC0415  # slow to import

    class Patience(Retry):
        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, patience_s)

    return Patience(
        total=None,
        connect=0,
        read=0,
        redirect=False,
        status=_TRIES - 1,
        status_forcelist=_AGAIN,
        allowed_methods=None,
        backoff_factor=min(0.5, patience_s / 8),
        raise_on_status=False,
    )


def _cause(reason: str) -> str:
    """Why points were dropped, in our words where they are known."""
    if "retention policy" in reason:
        return "older than the bucket keeps points: send them into one that keeps them longer"
    return reason


def _server_message(error: ApiException) -> tuple[str, bool]:
    """What the server says, without headers, and whether it is InfluxDB that says so, not a proxy."""
    try:
        body = json.loads(error.body)
        return str(body["message"]), "code" in body
    except (TypeError, ValueError, KeyError):
        return str(error.reason or ""), False


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
