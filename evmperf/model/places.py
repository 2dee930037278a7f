"""Places that several rooms agree on, and what of our environment a long-lived process of ours is handed."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

STEP_FOLDER = "/tmp/evmperf"
"""Where steps live on the board. The tester, which may serve several, has one folder a run."""

FURTHER_PROGRAMS = (
    "PATH=$PATH:/usr/sbin:/sbin:/opt/ltp/testcases/bin; "
    "for d in /usr/lib/lmbench/bin/*/; do PATH=$PATH:${d%/}; done"
)
"""Shell text after which programs are found that a login's PATH leaves out: TI's tests, Debian's lmbench."""

_PACKAGE = Path(__file__).resolve().parents[1]


def project(name: str) -> Path:
    """A top-level folder of the project: beside the package, or (setup.py) inside an installed one."""
    installed = _PACKAGE / "project" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


_PLAIN = re.compile(r"\w[\w .+=,@%()#:;|~-]*")
_NAME_BYTES = 200
"""Of the longest plain name: file systems take 255, and names are put together."""


def is_plain(name: str) -> bool:
    """Whether a name that a board, a log or a file said may be that of a file or folder of ours.

    A letter, digit or `_`, then also spaces and some marks: no separator, no control character.
    """
    return bool(_PLAIN.fullmatch(name)) and len(name.encode()) <= _NAME_BYTES


_HANDED_ON = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP LD_LIBRARY_PATH VIRTUAL_ENV
XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME
EVMPERF_CACHE EVMPERF_LOCKS EVMPERF_RECIPES EVMPERF_STATE
LG_HOSTNAME LG_USERNAME LG_PROXY SSH_AUTH_SOCK
"""
"""What any program may need, where our files are, who we are at a coordinator, the way to it."""


def for_children(environment: Mapping[str, str]) -> dict[str, str]:
    """What a stamper or a virtual lab gets, with this evmperf first on Python's path."""
    path = os.pathsep.join(filter(None, [str(_PACKAGE.parent), environment.get("PYTHONPATH")]))
    names = set(_HANDED_ON.split())
    kept = {n: v for n, v in environment.items() if n in names or n.startswith("LC_")}
    return kept | {"PYTHONPATH": path}
