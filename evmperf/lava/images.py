"""Images that a job boots over the network: what each is, and whether it is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import requests

from evmperf.lava.selection import JobKind
from evmperf.model.errors import UsageError

ROLES = ("kernel", "dtb", "ramdisk", "nfsrootfs", "modules")

_NAMES = (
    ("dtb", re.compile(r"\.dtb$")),
    ("modules", re.compile(r"modules.*\.t(ar|gz)")),
    ("nfsrootfs", re.compile(r"\.tar(\.\w+)?$|\.tgz$")),
    ("ramdisk", re.compile(r"\.cpio(\.\w+)?$|initrd|initramfs|ramdisk")),
    ("kernel", re.compile(r"^(Image|vmlinu[xz]|zImage|uImage)")),
)
_ANSWER_S = 20.0


def resources(given: Iterable[str], kind: JobKind) -> dict[str, str]:
    """URLs by role of `[ROLE=]URL` words; raises UsageError for one that does not answer."""
    found: dict[str, str] = {}
    for word in given:
        role, equals, url = word.partition("=")
        if not equals or role not in ROLES:
            role, url = _role(word), word
        if role in found:
            raise UsageError(f"--image: two images are the {role}: {found[role]} and {url}")
        _check(url)
        found[role] = url
    if not found:
        return {}
    if kind is not JobKind.NATIVE:
        raise UsageError(f"--image is for native jobs: a {kind} job measures what is installed")
    if "kernel" not in found or not {"ramdisk", "nfsrootfs"} & set(found):
        raise UsageError(
            "--image: a boot over the network needs a kernel, and ramdisk or nfsrootfs"
        )
    return found


def _role(url: str) -> str:
    name = Path(urlsplit(url).path).name
    for role, pattern in _NAMES:
        if pattern.search(name):
            return role
    raise UsageError(
        f"--image {url}: its name does not tell what it is: write ROLE={url} with ROLE one of "
        f"{', '.join(ROLES)}"
    )


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
