"""What of our environment a long-lived process of ours is handed: no token, no job of a CI."""

import os
from collections.abc import Mapping
from pathlib import Path

_HANDED_ON = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP LD_LIBRARY_PATH VIRTUAL_ENV
XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME
EVMPERF_CACHE EVMPERF_KEEPER EVMPERF_LOCKS EVMPERF_RECIPES EVMPERF_STATE
LG_HOSTNAME LG_USERNAME LG_PROXY SSH_AUTH_SOCK
"""
"""What any program may need, where our files are, who we are at a coordinator, the way to it."""


def for_children(environment: Mapping[str, str]) -> dict[str, str]:
    """What a keeper, a stamper or a virtual lab gets, with this evmperf first on Python's path."""
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, environment.get("PYTHONPATH")]))
    names = set(_HANDED_ON.split())
    kept = {n: v for n, v in environment.items() if n in names or n.startswith("LC_")}
    return kept | {"PYTHONPATH": path}
