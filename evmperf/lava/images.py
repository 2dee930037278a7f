"""Images that a job boots: what each is, and whether it is there."""

from collections.abc import Iterable
from urllib.parse import urlsplit

import requests

from evmperf.boards import images
from evmperf.lava.selection import JobKind
from evmperf.model.errors import UsageError

_ANSWER_S = 20.0


def resources(given: Iterable[str], kind: JobKind) -> dict[str, str]:
    """Images by role, WHOLE alone or parts of a network boot; raises UsageError for unfit ones."""
    words = list(given)
    if not words:
        return {}
    if kind is JobKind.BOOT:
        raise UsageError(f"--image is for native and host jobs: a {kind} job boots the installed system")
    if kind is JobKind.HOST:
        if len(words) > 1 or images.role(words[0])[0] in images.PARTS:
            raise UsageError("--image: a host job takes exactly one image, and it must be a whole one")
        return {images.WHOLE: words[0]}
    found: dict[str, str] = {}
    for word in words:
        role, url = images.role(word)
        if not role:
            raise UsageError(
                f"--image {url}: its name does not tell its role: write ROLE={url}, with ROLE one "
                f"of {', '.join([images.WHOLE, *images.PARTS])}"
            )
        if role in found:
            raise UsageError(f"--image: two images are the {role}: {found[role]} and {url}")
        _check(url)
        found[role] = url
    if images.WHOLE in found:
        if len(found) > 1:
            raise UsageError("--image: a whole image has its own kernel: remove the other --image options")
    elif "kernel" not in found or not {"ramdisk", "nfsrootfs"} & set(found):
        raise UsageError("--image: a boot over the network needs a kernel, and ramdisk or nfsrootfs")
    return found


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return  # on the worker's disk, which this machine cannot see
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"--image {url}: LAVA fetches http://, https:// and file:// only")
    try:
        answer = requests.head(url, timeout=_ANSWER_S, allow_redirects=True)
    except requests.RequestException as error:
        raise UsageError(f"--image {url}: does not answer ({type(error).__name__})") from None
    if not answer.ok:
        raise UsageError(f"--image {url}: answers {answer.status_code} {answer.reason}")
