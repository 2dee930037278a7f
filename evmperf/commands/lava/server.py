"""A LAVA server's REST interface (v0.2). The token comes from the environment, never from a command line,
and is in no message.
"""

import os
import re
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
import requests
from urllib3.exceptions import HTTPError

from evmperf.measure.within import within
from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError
from evmperf.model.tokens import address, usable

URL_VARIABLE, TOKEN_VARIABLE = "EVMPERF_LAVA_URL", "EVMPERF_LAVA_TOKEN"
_ANSWER_S = 30.0
"""For the next piece of an answer."""
_QUESTION_S, _LOG_S = 120.0, 3600.0
"""For a whole answer, with all tries."""
_PIECE = 1 << 20
_ANSWER_BYTES = 4 * limits.LAVA_JOB_BYTES
"""Of an answer, which may have a job's definition twice."""
_REASON_BYTES = 1 << 16
_POLL_S, _LEAST_S, _PAUSE_S = 2.0, 1.0, 1.0
_BUSY, _TRIES = (429, 502, 503, 504), 4

_Word = Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[\w .:+-]*\Z")]


class LavaJob(msgspec.Struct):
    """A job of the server; `health` is Unknown until `state` is Finished."""

    id: int
    state: _Word
    health: _Word
    actual_device: _Word | None = None
    original_definition: str | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        return self.state == "Finished"


class _Submitted(msgspec.Struct):
    job_ids: Annotated[list[int], msgspec.Meta(min_length=1)]


_Kind = TypeVar("_Kind")


class NotThere(UsageError):
    """The server has nothing of that number."""


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: a redirect is an answer, and requests would read its body without a limit."""


class LavaServer:
    """One server with one token; raises LabError for its failures, UsageError for its refusals. Each answer
    has a size and a time.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._session = _Session()
        if token:
            self._session.headers["Authorization"] = f"Token {token}"

    def submit(self, definition: str) -> list[int]:
        """Submit a job; the ids of what the server made of it."""
        return self._ask("POST", "jobs/", _Submitted, json={"definition": definition}).job_ids

    def job(self, number: int, within_s: float = _QUESTION_S) -> LavaJob:
        """The job of that number; the server has `within_s` seconds to answer."""
        return self._ask("GET", f"jobs/{number}/", LavaJob, within_s)

    def page(self, number: int) -> str:
        """The address of a job's page."""
        return f"{self.url}/scheduler/job/{number}"

    def wait(self, number: int, timeout_s: float, tell: Callable[[LavaJob], None]) -> LavaJob:
        """Follow a job to its end, telling each state; raises LabError after `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        state = ""
        while True:
            left_s = deadline - time.monotonic()
            job = self.job(number, min(max(left_s, _LEAST_S), _QUESTION_S))
            if job.state != state:
                state = job.state
                tell(job)
            if job.finished:
                return job
            if left_s <= 0:
                raise LabError(
                    f"job {number} is still {job.state} after {timeout_s:g} s: see {self.page(number)}"
                )
            time.sleep(min(left_s, _POLL_S))

    def log(self, number: int) -> str:
        """The job's log, a YAML list with one line an entry; raises LabError for a job that never ran."""
        try:
            log = self._read("GET", f"jobs/{number}/logs/", _LOG_S, limits.LAVA_LOG_BYTES)
        except NotThere:
            raise LabError(f"job {number} has no log: it never ran ({self.url})") from None
        return log.decode("utf-8", "replace")

    def _ask(
        self, method: str, path: str, kind: type[_Kind], within_s: float = _QUESTION_S, **more: Any
    ) -> _Kind:
        """What the server answers, as data of that kind."""
        body = self._read(method, path, within_s, **more)
        try:
            return msgspec.json.decode(body, type=kind, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise LabError(
                f"{self.url} does not answer like LAVA's REST interface v0.2 ({_named(path)}: "
                f"{error}): check the address"
            ) from None

    def _read(
        self, method: str, path: str, within_s: float = _QUESTION_S, most: int = _ANSWER_BYTES, **more: Any
    ) -> bytes:
        """The answer of at most `most` bytes within `within_s` seconds, also where the server trickles."""
        try:
            answer, body = within(within_s, lambda: self._exchange(method, path, most, **more))
        except TimeoutError:
            raise LabError(
                f"the LAVA server {self.url} does not answer within {within_s:.3g} s ({_named(path)}): "
                f"run the command again"
            ) from None
        if answer.status_code in (401, 403):
            raise UsageError(
                f"{self.url} does not accept the token ({answer.status_code}): make a new one "
                f"there and put it into {TOKEN_VARIABLE}"
            )
        if answer.status_code == 404:
            raise NotThere(f"{self.url} has no {_named(path)}")
        if answer.status_code == 400:
            raise UsageError(f"{self.url} refuses this: {_reason(body)}")
        if not 200 <= answer.status_code < 300:
            raise LabError(f"{self.url} answers {answer.status_code}: {_reason(body)}")
        if len(body) > most:
            raise LabError(f"{self.url} answers more than {limits.mib(most)} ({_named(path)}): not read")
        return body

    def _exchange(self, method: str, path: str, most: int, **more: Any) -> tuple[requests.Response, bytes]:
        """One answer and its body, cut after more than `most` bytes. A server closes connections when it
        likes, and may be busy, so asking is tried again; doing is not.
        """
        url = f"{self.url}/api/v0.2/{path}"
        for further in reversed(range(_TRIES if method == "GET" else 1)):
            body = bytearray()
            try:
                with self._session.request(
                    method, url, timeout=_ANSWER_S, allow_redirects=False, stream=True, **more
                ) as answer:
                    for piece in answer.iter_content(_PIECE):
                        body += piece
                        if len(body) > (most if answer.ok else _REASON_BYTES):
                            break
                if not further or answer.status_code not in _BUSY:
                    break
            except (OSError, HTTPError) as error:
                if not further:
                    raise LabError(
                        f"the LAVA server {self.url} cannot be reached ({type(error).__name__}): check "
                        f"its address and the network"
                    ) from None
            time.sleep(_PAUSE_S)
        return answer, bytes(body)


def _named(path: str) -> str:
    return path.strip("/").replace("jobs/", "job ")


def connect() -> LavaServer:
    """The server of the environment; raises UsageError."""
    url, token = (os.environ.get(name, "") for name in (URL_VARIABLE, TOKEN_VARIABLE))
    if not url:
        raise UsageError(f"no LAVA server: set {URL_VARIABLE} and {TOKEN_VARIABLE}")
    return LavaServer(address(url, URL_VARIABLE), usable(token, TOKEN_VARIABLE))


def job_number(given: str) -> int:
    """A job's number, alone or at the end of its page's address; raises UsageError."""
    match = re.fullmatch(r"(?:https?://.*/job/)?(\d+)/?", given)
    if not match:
        raise UsageError(f"{given!r} is not a job: give the job's number, its page, or its log as a file")
    return int(match[1])


def _reason(body: bytes) -> str:
    """Why, from the body of an error: DRF's JSON or text."""
    said: Any = body[:_REASON_BYTES].decode("utf-8", "replace")
    try:
        data = msgspec.json.decode(said)
    except (msgspec.DecodeError, RecursionError):
        data = said
    if isinstance(data, dict):
        data = data.get("message") or data.get("detail") or data
    return " ".join(str(data).split())[:300] or "no reason given"
