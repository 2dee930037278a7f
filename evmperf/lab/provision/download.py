"""Fetching images over HTTP: once per lab host, resumed where a connection was cut."""

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import requests
import urllib3

from evmperf.lab.provision.content import check_room
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
_TAG = "tag"
"""The file with what tells a fetched file from another: the server's ETag, else its date."""


def is_url(source: str) -> bool:
    """Whether a source of an image is fetched rather than opened."""
    return source.startswith(("http://", "https://"))


def fetch(url: str, folder: Path, tell: Callable[[str], None]) -> Path:
    """The file behind a URL in `folder`, fetched again if the server's has changed (ETag or date). Raises
    LabError, or UsageError for no such file or a URL that names none.
    """
    # The suffixes tell flashers the compression.
    file = folder / "".join(("fetched", *PurePosixPath(called(url)).suffixes[-2:]))
    for left in reversed(range(TRIES)):
        try:
            _continue(url, file, tell)
            break
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            if not left:
                raise LabError(
                    f"{url} cannot be fetched: {one_line(error, 160)}; the received part is kept, "
                    f"and the next call resumes there"
                ) from None
            time.sleep(PAUSE_S)
        except OSError as error:
            check_room(str(error), folder, url)
            raise LabError(f"{file} cannot be written: {error.strerror}") from None
    return file


def called(url: str) -> str:
    """The file name in a URL, for display; raises UsageError for separators and control characters."""
    name = unquote(PurePosixPath(urlsplit(url).path).name) or "image"
    if not is_plain(name):
        raise UsageError(f"{url}: {name!r} is not a file name: correct the address of the image")
    return name


def checksum(source: str) -> str:
    """The SHA-256 in the file SOURCE.sha256 beside an image, "" if there is none. Raises UsageError for
    such a file of this host without one.
    """
    beside, line = f"{source}.sha256", b""
    if is_url(source):
        with (
            contextlib.suppress(requests.RequestException, urllib3.exceptions.HTTPError),
            requests.get(beside, stream=True, timeout=TIMEOUT_S) as answer,
        ):
            line = answer.raw.read(_LINE, decode_content=True) if answer.ok else b""
    elif Path(beside).is_file():
        with Path(beside).open("rb") as file:
            line = file.read(_LINE)
    match = re.match(rb"\s*([0-9a-fA-F]{64})\b", line)
    if not match and Path(beside).is_file():
        raise UsageError(f"{beside} has no SHA-256 in it: correct or remove it")
    return match[1].decode().lower() if match else ""


def _continue(url: str, file: Path, tell: Callable[[str], None]) -> None:
    part, known = file.with_name(file.name + ".part"), file.with_name(_TAG)
    tag = known.read_text("latin-1") if known.is_file() else ""
    headers = {"Accept-Encoding": "identity"}
    done = part.stat().st_size if part.is_file() and tag else 0
    if done:
        # The rest of that same file, or all of another: the server knows by its tag.
        headers |= {"Range": f"bytes={done}-", "If-Range": tag}
    elif file.is_file() and tag:
        headers["If-None-Match" if '"' in tag else "If-Modified-Since"] = tag
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.not_modified:
            return
        if answer.status_code == requests.codes.range_not_satisfiable:
            part.unlink(missing_ok=True)
        elif 400 <= answer.status_code < 500:
            raise UsageError(f"{url}: {answer.status_code} {answer.reason}: correct the address of the image")
        answer.raise_for_status()
        resumed = answer.status_code == requests.codes.partial_content
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified", "")
        write_whole(known, tag.encode("latin-1", "replace"))
        done = done if resumed else 0
        length = answer.headers.get("Content-Length", "")
        size = f"{int(length) >> 20} MiB" if length.isdecimal() else "no size said"
        tell(f"fetching {concealed(url)}{' from where it was cut' if done else ''} ({size})")
        with part.open("ab" if resumed else "wb") as sink:
            # As received: requests' own iterator loses what came before a connection was cut.
            for piece in answer.raw.stream(_PIECE, decode_content=False):
                sink.write(piece)
                done += len(piece)
                if done > limits.DOWNLOAD_BYTES:
                    much = f"{limits.DOWNLOAD_BYTES >> 30} GiB"
                    raise UsageError(f"{url} has more than {much}, the limit of an image")
    part.rename(file)
