"""A LAVA server's REST interface (v0.2). The token comes from the environment or lavacli's configuration,
never from a command line, and is in no message.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
import yaml
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from evmperf.model import limits
from evmperf.model.errors import LabError, UsageError
from evmperf.model.plugins import plugins
from evmperf.model.tokens import usable

URL_VARIABLE, TOKEN_VARIABLE = "EVMPERF_LAVA_URL", "EVMPERF_LAVA_TOKEN"
_ANSWER_S = 30.0
_PIECE = 1 << 20
_POLL_S = 2.0
_FINISHED = "Finished"


class NotThere(UsageError):
    """The server has nothing of that number."""


@dataclass(frozen=True)
class LavaJob:
    """A job of the server; `health` is Unknown until `state` is Finished."""

    id: int
    state: str
    health: str
    device: str
    definition: str
    url: str

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        return self.state == _FINISHED


class LavaServer:
    """One server with one token; raises LabError for its failures, UsageError for its refusals."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._session = requests.Session()
        # A server closes kept connections when it likes, so asking is tried again; doing is not.
        again = HTTPAdapter(max_retries=Retry(3, allowed_methods=["GET"], backoff_factor=0.3))
        self._session.mount("http://", again)
        self._session.mount("https://", again)
        if token:
            self._session.headers["Authorization"] = f"Token {token}"

    def submit(self, definition: str) -> list[int]:
        """Submit a job; the ids of what the server made of it."""
        answer = self._ask("POST", "jobs/", json={"definition": definition})
        return [int(number) for number in answer.json()["job_ids"]]

    def job(self, number: int) -> LavaJob:
        """The job of that number."""
        data = self._ask("GET", f"jobs/{number}/").json()
        state, health, device = (str(data[name] or "") for name in ("state", "health", "actual_device"))
        definition = str(data["original_definition"] or data["definition"] or "")
        page = f"{self.url}/scheduler/job/{number}"
        return LavaJob(int(data["id"]), state, health, device, definition, page)

    def wait(
        self, number: int, timeout_s: float, tell: Callable[[LavaJob], None], ending: threading.Event
    ) -> LavaJob:
        """Follow a job to its end, telling each state; raises LabError after `timeout_s` seconds, or
        at `ending`.
        """
        deadline = time.monotonic() + timeout_s
        state = ""
        while True:
            job = self.job(number)
            if job.state != state:
                state = job.state
                tell(job)
            if job.finished:
                return job
            if time.monotonic() > deadline:
                raise LabError(f"job {number} is still {job.state} after {timeout_s:g} s: see {job.url}")
            if ending.wait(_POLL_S):
                raise LabError(f"job {number} is {job.state} and goes on: see {job.url}")

    def log(self, number: int) -> str:
        """The job's log, a YAML list with one line an entry; raises LabError for a job that never ran."""
        try:
            answer = self._ask("GET", f"jobs/{number}/logs/", stream=True)
        except NotThere:
            raise LabError(f"job {number} has no log: it never ran ({self.url})") from None
        log = bytearray()
        try:
            with answer:
                for piece in answer.iter_content(_PIECE):
                    log += piece
                    if len(log) > limits.LAVA_LOG_BYTES:
                        raise UsageError(
                            f"job {number}: its log has more than {limits.mib(limits.LAVA_LOG_BYTES)}: end "
                            f"the program that floods its console"
                        )
        except requests.RequestException as error:
            raise LabError(
                f"the connection to the LAVA server {self.url} broke while it sent the log of job "
                f"{number} ({type(error).__name__}): run the command again"
            ) from None
        return log.decode("utf-8", "replace")

    def results(self, number: int, suite: str) -> list[dict[str, object]]:
        """The test cases (`name`, `result`, `measurement`, `unit`) that the job reported in a suite, whose
        name is without LAVA's index.
        """
        suites = self._pages(f"jobs/{number}/suites/")
        ids = {str(s["id"]) for s in suites if re.sub(r"^\d+_", "", str(s["name"])) == suite}
        cases = self._pages(f"jobs/{number}/tests/")
        # The server gives a suite as a number or as the address of its page.
        return [case for case in cases if str(case["suite"]).rstrip("/").rpartition("/")[2] in ids]

    def cancel(self, number: int) -> None:
        """Cancel a job that runs or waits."""
        self._ask("GET", f"jobs/{number}/cancel/")

    def _pages(self, path: str) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        while True:
            data = self._ask("GET", path, params={"limit": 100, "offset": len(entries)}).json()
            entries += data["results"]
            if not data["next"] or not data["results"]:
                return entries

    def _ask(self, method: str, path: str, **more: Any) -> requests.Response:
        url = f"{self.url}/api/v0.2/{path}"
        try:
            answer = self._session.request(method, url, timeout=_ANSWER_S, allow_redirects=False, **more)
        except requests.RequestException as error:
            raise LabError(
                f"the LAVA server {self.url} cannot be reached ({type(error).__name__}): check "
                f"its address and the network"
            ) from None
        if answer.status_code in (401, 403):
            raise UsageError(
                f"{self.url} does not accept the token ({answer.status_code}): make a new one "
                f"there and put it into {TOKEN_VARIABLE} or lavacli's configuration"
            )
        if answer.status_code == 404:
            raise NotThere(f"{self.url} has no {path.strip('/').replace('jobs/', 'job ')}")
        if answer.status_code == 400:
            raise UsageError(f"{self.url} refuses this: {_reason(answer)}")
        if not answer.ok or answer.is_redirect:
            raise LabError(f"{self.url} answers {answer.status_code}: {_reason(answer)}")
        return answer


def connect(identity: str = "") -> LavaServer:
    """The server of this identity, of the environment, or of a lab on this machine; raises UsageError."""
    url = os.environ.get(URL_VARIABLE, "")
    if url and not identity:
        return LavaServer(_without_secrets(url), usable(os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE))
    if configured := _lavacli(identity):
        return configured
    for local in plugins("lava").values() if not identity else ():
        if address := local.load()():
            return LavaServer(*address)
    raise UsageError(
        f"no LAVA server: set {URL_VARIABLE} and {TOKEN_VARIABLE}, make an identity with "
        f"`lavacli identities add`, or start a lab on this machine with `make lava-lab`"
    )


def job_number(given: str) -> int:
    """A job's number, alone or at the end of its page's address; raises UsageError."""
    match = re.fullmatch(r"(?:https?://.*/job/)?(\d+)/?", given)
    if not match:
        raise UsageError(f"{given!r} is not a job: give the job's number, its page, or its log as a file")
    return int(match[1])


def _lavacli(identity: str) -> LavaServer | None:
    """The server of an identity in lavacli's configuration (its README, `identities`)."""
    base = os.environ.get("XDG_CONFIG_HOME")
    path = (Path(base) if base else Path.home() / ".config") / "lavacli.yaml"
    try:
        identities = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        identities = {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        # The text of the error may quote the file, and so a token.
        raise UsageError(f"{path} cannot be read ({type(error).__name__})") from None
    entry = identities.get(identity or "default") if isinstance(identities, dict) else None
    if not isinstance(entry, dict) or "uri" not in entry:
        if identity:
            raise UsageError(f"{path} has no identity {identity!r} with a uri")
        return None
    uri = str(entry["uri"])
    token = usable(str(entry.get("token") or urlsplit(uri).password or ""), f"{path}: the token")
    return LavaServer(re.sub(r"/RPC2/?$", "", _without_secrets(uri)), token)


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # of brackets or a port; its text may quote the address, and so a token
        raise UsageError("the LAVA server's address cannot be read: write http(s)://HOST[:PORT]") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"the LAVA server's address must be http(s)://HOST, not {parts.scheme}...")
    host = parts.hostname + (f":{port}" if port else "")
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def _reason(answer: requests.Response) -> str:
    try:
        data = answer.json()
    except ValueError:
        return " ".join(answer.text.split())[:200] or "no reason given"
    if isinstance(data, dict):
        data = data.get("message") or data.get("detail") or data
    return " ".join(str(data).split())[:300]
