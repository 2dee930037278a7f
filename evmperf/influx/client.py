"""Talking to an InfluxDB 2.x server, with errors that say what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from evmperf.influx.config import Config, variable
from evmperf.model.errors import LabError

if TYPE_CHECKING:
    from influxdb_client.client.flux_table import FluxRecord
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.rest import ApiException

_TIMEOUT_S = 20.0
_MOST_REFUSED = 100
"""Points refused one by one before the server is taken to refuse them all."""
_ROWS_AT_ONCE = 500
"""Rows of an answer in parts; a row may have a text of 60 kB."""

Row = TypeVar("Row")


class StoreError(LabError):
    """The server did not take or give what was asked; nothing is lost, it waits on the disk."""


class _BadPoints(StoreError):
    """The server found fault with points of a batch, not with us."""


class Series(msgspec.Struct, Generic[Row]):
    """Rows of one series, with the tags by which it was grouped ("" for one that it has not)."""

    values: list[Row]
    tags: dict[str, str] = {}


class _Selected(msgspec.Struct, Generic[Row]):
    series: list[Series[Row]] = []
    error: str = ""


class _Reply(_Selected[Row]):
    """A line of an answer in parts; it has no series itself."""

    results: list[_Selected[Row]] = []


class Store:
    """One bucket. Use as a context manager, or close it."""

    def __init__(self, config: Config, timeout_s: float = _TIMEOUT_S) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415  # slow to import
        from influxdb_client.client.write_api import SYNCHRONOUS  # noqa: PLC0415

        self.config = config
        self._timeout_s = timeout_s
        # The batching mode of this client loses points when the server is down; this one raises.
        self._client: InfluxDBClient = InfluxDBClient(
            config.url, config.token, org=config.org, timeout=int(timeout_s * 1000)
        )
        self._write = self._client.write_api(write_options=SYNCHRONOUS)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()  # type: ignore[no-untyped-call]  # the client is not typed

    def write(self, lines: Sequence[str]) -> list[tuple[str, str]]:
        """Store lines of line protocol; returns those the server will not have, with its reason.

        One bad line makes the server refuse its batch, or half of it: the batch is halved until
        the bad ones are alone. Raises StoreError when the server takes nothing; writing the same
        lines again changes nothing.
        """
        refused: list[tuple[str, str]] = []
        parts = [lines]
        while parts:
            part = parts.pop()
            try:
                self._post(part)
            except _BadPoints as error:
                if len(part) == 1:
                    refused.append((part[0], str(error)))
                else:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                if len(refused) > _MOST_REFUSED:
                    raise StoreError(
                        f"{error}; more than {_MOST_REFUSED} points are refused"
                    ) from None
        return refused

    def _post(self, lines: Sequence[str]) -> None:
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            self._write.write(self.config.bucket, record="\n".join(lines).encode())
        except ApiException as error:
            raise self._refused(error) from None
        except HTTPError as error:
            raise self._unreachable(error) from None

    def query(self, flux: str, **values: Any) -> Iterator[FluxRecord]:
        """The rows of a query, one by one. In `flux`, `params.NAME` stands for a value and `from`
        takes `params.bucket`.
        """
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        text = f"params = {_literal({**values, 'bucket': self.config.bucket})}\n{flux}"
        try:
            yield from self._client.query_api().query_stream(text)
        except ApiException as error:
            raise self._refused(error) from None
        except HTTPError as error:
            raise self._unreachable(error) from None

    def select(self, influxql: str, row: type[Row], **values: str) -> Iterator[Series[Row]]:
        """The series of an InfluxQL query, a long one in parts. `$NAME` stands for a value; `row`
        is the tuple of types that a row has: the time as nanoseconds, then the fields.

        Raises StoreError.
        """
        from influxdb_client.rest import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        config = self.config
        decode = msgspec.json.Decoder(_Reply[row]).decode  # type: ignore[valid-type]
        fields = {"db": config.bucket, "q": influxql, "params": json.dumps(values), "epoch": "ns"}
        fields |= {"chunked": "true", "chunk_size": str(_ROWS_AT_ONCE)}
        try:
            reply = self._client.api_client.rest_client.request(  # type: ignore[no-untyped-call]
                "POST",
                f"{config.url}/query",
                headers={
                    "Authorization": f"Token {config.token}",
                    "Content-Type": "application/x-www-form-urlencoded",
                },
                post_params=fields,
                _preload_content=False,
            )
            try:
                for part in map(decode, _lines(reply.stream(1 << 16))):
                    for selected in (part, *part.results):
                        if selected.error:
                            raise self._not_selected(selected.error)
                        yield from selected.series
            finally:
                reply.close()
        except ApiException as error:
            raise self._refused(error) from None
        except HTTPError as error:
            raise self._unreachable(error) from None

    def _not_selected(self, said: str) -> StoreError:
        return StoreError(
            f"InfluxDB {self.config.url}: cannot answer ({self._without_token(said)}): see its log"
        )

    def _unreachable(self, error: Exception) -> StoreError:
        said = str(error)
        if "timed out" in said:
            return StoreError(
                f"InfluxDB {self.config.url}: no answer within {self._timeout_s:g} s: look at the "
                f"server's load; what waits is sent next time"
            )
        cause = said.rpartition("] ")[2].rstrip("')") or type(error).__name__
        return StoreError(
            f"InfluxDB {self.config.url}: cannot be reached ({cause}): start the server or "
            f"check {variable('url')}; what waits is sent next time"
        )

    def _refused(self, error: ApiException) -> StoreError:
        status, said = error.status or 0, self._without_token(_message(error))
        config = self.config
        kind = StoreError
        if status == 401:
            what = f"refuses the token ({said})"
            remedy = f"check {variable('token')}, and that it is of organisation {config.org!r}"
        elif status == 403:
            what = f"the token has no right to this ({said})"
            remedy = f"give it read and write on bucket {config.bucket!r}"
        elif status == 404 and "organization" in said:
            what = f"knows no organisation {config.org!r} for this token ({said})"
            remedy = f"check {variable('org')}"
        elif status == 404:
            what = f"finds no bucket {config.bucket!r} in organisation {config.org!r} ({said})"
            remedy = f"check {variable('bucket')} or create it"
        elif "no space left" in said or status == 507:
            what = f"the server's disk is full ({said})"
            remedy = "make room there; what waits is sent next time"
        elif status in (400, 413, 422):
            kind, what, remedy = _BadPoints, said, "see docs/results.md for what is stored"
        else:
            what, remedy = f"answers {status} ({said})", "what waits is sent next time"
        return kind(f"InfluxDB {config.url}: {what}: {remedy}")

    def _without_token(self, text: str) -> str:
        return text.replace(self.config.token, "***")


def _message(error: ApiException) -> str:
    """What the server says, without the headers that the exception's own text has."""
    try:
        said = str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        said = str(error.reason or "")
    return " ".join(said.split())[:500]


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from filter(None, whole)
    if rest:
        yield rest


def _literal(value: Any) -> str:
    """A value as Flux writes it: text, whole number, list, record."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return f'"{text}"'
