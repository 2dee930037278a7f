"""Talking to the InfluxDB 2.x server that the environment names, with errors that say what to do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evmperf.measure.within import within
from evmperf.model.concealing import learn
from evmperf.model.errors import LabError, UsageError
from evmperf.model.tokens import address, usable

_WHOLE = 4
"""Times the timeout for a request with all its tries: bytes may come all the time."""
_SHOWN = 500
"""Characters of the server's words, and of a refused point, in a message."""

_NAMES = URL, TOKEN, ORG, BUCKET = [f"EVMPERF_INFLUX_{name}" for name in ("URL", "TOKEN", "ORG", "BUCKET")]
"""Variables of the environment."""
_CHECK = f"check {URL}, _TOKEN, _ORG and _BUCKET, the server, and proxies before it"


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


class StoreError(LabError):
    """What was asked was not taken or given; nothing is lost. `refused` is what InfluxDB itself says."""

    def __init__(self, message: str, refused: str) -> None:
        super().__init__(message)
        self.refused = refused


class Store(contextlib.AbstractContextManager["Store"]):
    """One bucket, as a context manager. It waits up to `timeout_s` for each part of an answer, and at most
    so long before a further try, whatever the server asks for. Raises UsageError without settings.
    """

    def __init__(self, config: Config | None, timeout_s: float = 20.0) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415  # slow to import
        from influxdb_client.client.write_api import SYNCHRONOUS  # noqa: PLC0415
        from urllib3 import Retry  # noqa: PLC0415

        if config is None:
            raise UsageError(f"InfluxDB is not configured: set {URL}, _TOKEN, _ORG and _BUCKET")
        learn({TOKEN: config.token})
        again = Retry(
            3,
            connect=0,
            read=0,
            redirect=False,
            other=0,
            status_forcelist=(429, 502, 503, 504),
            allowed_methods=None,
            backoff_factor=0.5,
            retry_after_max=int(timeout_s),
            raise_on_status=False,
        )
        self.config, self._timeout_s = config, timeout_s
        self._client = InfluxDBClient(
            config.url, config.token, org=config.org, timeout=int(timeout_s * 1000), retries=again
        )
        self._writing = self._client.write_api(SYNCHRONOUS)

    def __exit__(self, *_: object) -> None:
        self._client.close()  # type: ignore[no-untyped-call]  # the client is not typed

    def write(self, lines: Sequence[str]) -> list[str]:
        """Store lines, even again, and without those that cannot be parsed once more: the server takes none
        of them. Returns which are not stored, and why. Raises StoreError.
        """
        try:
            with self._asking():
                body, bucket = "\n".join(lines).encode(), self.config.bucket
                within(_WHOLE * self._timeout_s, lambda: self._writing.write(bucket, record=body))
                if (status := self._client.api_client.last_response.status) != 204:
                    raise ValueError(f"{status} where it should be 204")
        except StoreError as error:
            if "partial write: " in error.refused:
                return [error.refused[:_SHOWN]]
            bad = {line for line in lines if f"unable to parse '{line}'" in error.refused}
            if not bad:
                raise
            rest = [line for line in lines if line not in bad]
            named = [f"cannot be parsed: {line[:_SHOWN]}" for line in sorted(bad)]
            return named + (self.write(rest) if rest else [])
        return []

    def query(self, flux: str, **values: object) -> Iterator[dict[str, Any]]:
        """The rows of a query, one by one. It may name `values` and `bucket`. Raises StoreError."""
        values = {"bucket": self.config.bucket, **values}
        with self._asking():
            for row in self._client.query_api().query_stream(flux, params=values):
                yield row.values

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn every error of a request into a StoreError with its remedy."""
        from influxdb_client.client import flux_csv_parser as csv  # noqa: PLC0415  # slow to import
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            yield
        except ApiException as error:
            # InfluxDB itself says what is wrong; a proxy has a page.
            own = "X-Platform-Error-Code" in (error.headers or {})
            said = str(error.message if own else error.reason)
            raise self._failed(f"answers {error.status} ({said})", refused=said if own else "") from None
        except (HTTPError, OSError) as error:
            said = str(error).rpartition("] ")[2].partition(" (_ssl.c")[0].rstrip("')\"")
            remedy = "name the lab's certificates in SSL_CERT_FILE" if "certificate" in said else _CHECK
            raise self._failed(f"cannot be reached ({said or type(error).__name__})", remedy) from None
        except (csv.FluxQueryException, csv.FluxCsvParserException, LookupError, ValueError) as error:
            raise self._failed(f"the answer cannot be read, perhaps it is a proxy's ({error})") from None

    def _failed(self, what: str, remedy: str = _CHECK, refused: str = "") -> StoreError:
        return StoreError(f"InfluxDB {self.config}: {what[:_SHOWN]}: {remedy}", refused)
