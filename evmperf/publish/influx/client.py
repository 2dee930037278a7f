"""Talking to the InfluxDB 2.x server that the environment names, with errors that say what to do."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evmperf.model.errors import LabError, UsageError
from evmperf.model.tokens import address, usable

if TYPE_CHECKING:
    from influxdb_client.client.flux_table import FluxRecord
    from influxdb_client.rest import ApiException

_WHOLE = 3
"""Times the timeout for a whole request and its answer: bytes may come all the time."""
_TRIES = 4
_SHOWN = 500
"""Characters of the server's words, and of a refused point, in a message."""
_LATER = "waiting points are sent next time"
_DROPPED = re.compile(r"partial write: (?:dropped (\d+) )?(.*?)(?: dropped=(\d+))?$")
"""What InfluxDB says of points that it passed over while it took the others: 2.10 and 2.7 for old ones."""
_TOO_OLD = "older than the bucket keeps points: send them into one that keeps them longer"

_NAMES = URL, TOKEN, ORG, BUCKET = [f"EVMPERF_INFLUX_{name}" for name in ("URL", "TOKEN", "ORG", "BUCKET")]
"""Variables of the environment."""
_ANSWERS = {
    401: ("refuses the token", f"check {TOKEN}, and that it is of organisation {{org!r}}"),
    403: ("the token has no right to this", "give it read and write on bucket {bucket!r}"),
    404: ("finds no bucket {bucket!r} in organisation {org!r}", f"check {BUCKET} and {ORG}"),
    413: ("a megabyte is too large for it", f"raise the limit of server or proxy; {_LATER}"),
    507: ("the server's disk is full", f"make room there; {_LATER}"),
}
"""Status: what it means, and the remedy."""
_UNTRUSTED = "name the file with the lab's certificates in SSL_CERT_FILE"


@dataclass(frozen=True)
class Config:
    """A bucket of an InfluxDB 2.x server. The token is in no text that this class makes."""

    url: str
    org: str
    bucket: str
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.url} (organisation {self.org}, bucket {self.bucket})"


def load(environment: Mapping[str, str] = os.environ) -> Config | None:
    """The settings, None without any; raises UsageError for wrong ones."""
    values = {name: usable(environment.get(name, ""), f"InfluxDB: {name}") for name in _NAMES}
    if not any(values.values()):
        return None
    if missing := [name for name, value in values.items() if not value]:
        raise UsageError(f"InfluxDB: set {', '.join(missing)}, too")
    url = address(values[URL], f"InfluxDB: {URL}")
    return Config(url, values[ORG], values[BUCKET], values[TOKEN])


def required() -> Config:
    """The same settings; raises UsageError where there are none, too."""
    config = load()
    if config is None:
        raise UsageError(f"InfluxDB is not configured: set {URL}, _TOKEN, _ORG and _BUCKET")
    return config


class StoreError(LabError):
    """The server did not take or give what was asked; nothing is lost, it waits on the disk."""

    reason = ""
    """What InfluxDB found wrong with lines of a request."""


class Store(contextlib.AbstractContextManager["Store"]):
    """One bucket, as a context manager; waits up to `patience_s` before a further try, whatever the server
    asks for.
    """

    def __init__(self, config: Config, timeout_s: float = 20.0, patience_s: int = 60) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415  # slow to import
        from influxdb_client.service.write_service import WriteService  # noqa: PLC0415
        from urllib3 import Retry  # noqa: PLC0415

        again = Retry(
            _TRIES - 1,
            connect=0,
            read=0,
            redirect=False,
            other=0,
            status_forcelist=(429, 502, 503, 504),
            allowed_methods=None,
            backoff_factor=min(0.5, patience_s / 8),
            retry_after_max=patience_s,
            raise_on_status=False,
        )
        self.config, self._timeout_s = config, timeout_s
        self._whole_s = _WHOLE * timeout_s + (_TRIES - 1) * patience_s
        self._client = InfluxDBClient(
            config.url, config.token, org=config.org, timeout=int(timeout_s * 1000), retries=again
        )
        self._writing: Any = WriteService(self._client.api_client)  # type: ignore[no-untyped-call]

    def __exit__(self, *_: object) -> None:
        self._client.close()  # type: ignore[no-untyped-call]  # the client is not typed

    def start(self, lines: Sequence[str]) -> Future[Counter[str]]:
        """Begin to store lines, even again; `finish` waits for it."""
        future: Future[Counter[str]] = Future()

        def work() -> None:
            try:
                future.set_result(self._write(lines))
            except BaseException as error:  # noqa: BLE001  # it is raised where the answer is waited for
                future.set_exception(error)

        # Nobody has to wait for a daemon at a server that hangs; the client's own pool would be joined.
        threading.Thread(target=work, daemon=True).start()
        return future

    def finish(self, started: Future[Counter[str]]) -> Counter[str]:
        """Wait until lines are stored; returns the points that are not, by the reason. Raises StoreError."""
        try:
            return started.result(self._whole_s)
        except TimeoutError:
            raise self._late(self._whole_s) from None

    def _write(self, lines: Sequence[str]) -> Counter[str]:
        """Write lines, and without those that cannot be parsed once more: the server takes none of them."""
        try:
            with self._asking():
                body = "\n".join(lines).encode()
                # Two threads may write: the client's last response may be the other's.
                _, status, _ = self._writing.post_write_with_http_info(
                    self.config.org, self.config.bucket, body, content_type="text/plain; charset=utf-8"
                )
                if status != 204:
                    raise self._no_influxdb(f"{status} where it should be 204")
        except StoreError as refused:
            if dropped := _DROPPED.search(refused.reason):
                why = _TOO_OLD if "retention policy" in dropped[2] else dropped[2]
                return Counter({why: int(dropped[1] or dropped[3] or 1)})
            bad = {line for line in lines if f"unable to parse '{line}'" in refused.reason}
            if not bad:
                raise
            named = Counter(f"cannot be parsed: {line[:_SHOWN]}" for line in bad)
            rest = [line for line in lines if line not in bad]
            return named + (self._write(rest) if rest else Counter())
        return Counter()

    def query(self, flux: str, **values: object) -> Iterator[FluxRecord]:
        """The rows of a query, one by one. It may name `values` and `bucket`. Raises StoreError."""
        from influxdb_client.client import flux_csv_parser as parser  # noqa: PLC0415  # slow to import

        with self._asking():
            try:
                yield from self._client.query_api().query_stream(
                    flux, params={**values, "bucket": self.config.bucket}
                )
            except parser.FluxQueryException as error:
                raise self._failed(f"cannot answer ({error.message})", "see its log") from None
            except (parser.FluxCsvParserException, LookupError, ValueError) as error:
                raise self._no_influxdb(f"rows that are none ({error})") from None

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn every error of a request into a StoreError with its remedy."""
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            yield
        except ApiException as error:
            raise self._refused(error) from None
        except UnicodeError as error:
            raise self._no_influxdb(f"no text: {error}") from None
        except (HTTPError, OSError) as error:
            if "timed out" in str(error):
                raise self._late(self._timeout_s) from None
            said = str(error).rpartition("] ")[2].partition(" (_ssl.c")[0]
            cause = said.rstrip("')\"") or type(error).__name__
            remedy = _UNTRUSTED if "certificate" in cause else f"start the server or check {URL}"
            raise self._failed(f"cannot be reached ({cause})", f"{remedy}; {_LATER}") from None

    def _failed(self, what: str, remedy: str) -> StoreError:
        return StoreError(f"InfluxDB {self.config.url}: {self._without_token(what)[:_SHOWN]}: {remedy}")

    def _without_token(self, text: str) -> str:
        return text.replace(self.config.token, "***")

    def _no_influxdb(self, what: str) -> StoreError:
        foreign = f"the answer is not InfluxDB's, perhaps a proxy's ({what})"
        return self._failed(foreign, f"check {URL} and the proxy; {_LATER}")

    def _late(self, within_s: float) -> StoreError:
        return self._failed(f"no complete answer within {within_s:g} s", f"check the server's load; {_LATER}")

    def _refused(self, error: ApiException) -> StoreError:
        status, reason, is_influxdbs = error.status or 0, str(error.reason or ""), False
        # What the server says, without headers, and whether it is InfluxDB that says so, not a proxy.
        with contextlib.suppress(TypeError, ValueError, KeyError):
            body = json.loads(error.body)
            reason, is_influxdbs = str(body["message"]), "code" in body
        if status in (400, 422) and is_influxdbs:
            refused = self._failed(reason, "see docs/results.md for what is stored")
            refused.reason = self._without_token(reason)
            return refused
        unknown = (f"answers {status}", f"check {URL} and the server; {_LATER}")
        answer = _ANSWERS.get(507 if "no space left" in reason else status, unknown)
        what, remedy = (text.format(org=self.config.org, bucket=self.config.bucket) for text in answer)
        return self._failed(f"{what} ({reason})", remedy)
