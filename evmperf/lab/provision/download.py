"""Fetching images over HTTP: once per lab host, resumed where a connection was cut."""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec
import requests
import urllib3
from msgspec.structs import replace

from evmperf.lab.provision.content import SUFFIXES, Progress, check_room
from evmperf.lab.provision.record import stored
from evmperf.measure.runs.spool import write_whole
from evmperf.model import limits
from evmperf.model.concealing import concealed
from evmperf.model.errors import LabError, UsageError, one_line
from evmperf.model.places import is_plain

TRIES = 4
"""Times that a cut download is taken up again before it is given up."""
TIMEOUT_S = 30.0
"""Seconds of silence after which a server counts as gone."""
PAUSE_S = 0.5
"""Seconds between tries."""
_PIECE = 1 << 20
_LINE = 4096
"""Bytes of a checksum's file that are looked at."""
_ABOUT = "about.json"


class _About(msgspec.Struct):
    """What is known of a fetched file."""

    url: str = ""
    etag: str = ""
    date: str = ""
    sha256: str = ""


def _about(folder: Path) -> _About:
    return stored(folder / _ABOUT, _About) or _About()


def is_url(source: str) -> bool:
    """Whether a source of an image is fetched rather than opened."""
    return source.startswith(("http://", "https://"))


def fetch(url: str, folder: Path, progress: Progress, *, sha256: str = "") -> Path:
    """The file behind a URL in `folder`, fetched again if the server's has changed (ETag or date); a
    complete file with `sha256` serves when the server is silent. Raises LabError, or UsageError for no such
    file.
    """
    # The suffixes tell flashers the compression.
    suffixes = re.search(rf"(\.(wic|img|sdimg))?(\.({'|'.join(SUFFIXES)}))?$", called(url))
    target = folder / f"image{suffixes[0] if suffixes else ''}"
    for left in range(TRIES - 1, -1, -1):
        about = _about(folder)
        try:
            _continue(url, target, about, progress)
            break
        except requests.RequestException as error:
            if target.is_file() and sha256 and about.sha256 == sha256:
                return target
            if not left:
                raise LabError(
                    f"{url} cannot be fetched: {_reason(error)}; the received part is kept, "
                    f"and the next call resumes there"
                ) from None
            time.sleep(PAUSE_S)
        except OSError as error:
            check_room(error, folder, url)
            raise LabError(f"{target} cannot be written: {error.strerror}") from None
    return target


def called(url: str) -> str:
    """The file name in a URL, for display; raises UsageError for separators and control characters."""
    name = unquote(PurePosixPath(urlsplit(url).path).name) or "image"
    if not is_plain(name):
        raise UsageError(f"{url}: {name!r} is not a file name: correct the address of the image")
    return name


def name_of(file: Path) -> str:
    """The displayed name of a file that `fetch` has stored."""
    url = _about(file.parent).url
    return called(url) if url else file.name


def checksum(url: str) -> str:
    """The SHA-256 in the server's file URL.sha256, "" if there is none."""
    with (
        contextlib.suppress(requests.RequestException, urllib3.exceptions.HTTPError, OSError),
        requests.get(f"{url}.sha256", stream=True, timeout=TIMEOUT_S) as answer,
    ):
        line = answer.raw.read(_LINE, decode_content=True) if answer.ok else b""
        match = re.match(rb"\s*([0-9a-fA-F]{64})\b", line)
        return match[1].decode().lower() if match else ""
    return ""


def note_sha256(folder: Path, sha256: str) -> None:
    """Store the SHA-256 of the fetched file."""
    write_whole(folder / _ABOUT, msgspec.json.encode(replace(_about(folder), sha256=sha256)))


def _continue(url: str, target: Path, about: _About, progress: Progress) -> None:
    part = target.with_name(target.name + ".part")
    tag = about.etag or about.date
    headers = {"Accept-Encoding": "identity"}
    have = part.stat().st_size if part.is_file() and tag else 0
    if have:
        # The rest of that same file, or all of another: the server knows by its tag.
        headers |= {"Range": f"bytes={have}-", "If-Range": tag}
    elif target.is_file() and tag:
        headers["If-None-Match" if about.etag else "If-Modified-Since"] = tag
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.not_modified:
            return
        if answer.status_code == requests.codes.range_not_satisfiable:
            part.unlink(missing_ok=True)
            raise requests.ConnectionError("the server has less of it than before")
        if 400 <= answer.status_code < 500:
            raise UsageError(f"{url}: {answer.status_code} {answer.reason}: correct the address of the image")
        answer.raise_for_status()
        resumed = answer.status_code == requests.codes.partial_content
        etag, date = (answer.headers.get(name, "") for name in ("ETag", "Last-Modified"))
        target.with_name(_ABOUT).write_bytes(msgspec.json.encode(_About(concealed(url), etag, date)))
        whole = int(answer.headers.get("Content-Length", 0)) + (have if resumed else 0)
        done = have if resumed else 0
        _check_size(url, whole)
        with part.open("ab" if resumed else "wb") as file:
            for piece in _pieces(answer):
                file.write(piece)
                done += len(piece)
                _check_size(url, done)
                progress(done, whole)
        if whole and done != whole:
            raise requests.ConnectionError(f"the connection was cut after {done} of {whole} bytes")
    part.rename(target)


def _check_size(url: str, size: int) -> None:
    if size > limits.DOWNLOAD_BYTES:
        raise UsageError(f"{url} has more than {limits.DOWNLOAD_BYTES >> 30} GiB, the limit of an image")


def _pieces(answer: requests.Response) -> Iterator[bytes]:
    """The body in pieces; what arrived before the connection was cut is kept."""
    try:
        while piece := answer.raw.read1(_PIECE):
            yield piece
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.Timeout(str(error)) from None
    except (urllib3.exceptions.HTTPError, OSError):
        raise requests.ConnectionError("the connection was cut") from None


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return f"the server said nothing for {TIMEOUT_S:g} s"
    if error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    return one_line(error, 160)
