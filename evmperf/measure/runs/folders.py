"""Where evmperf keeps files beside the runs: what can be built again, and what runs at the moment."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder for what can be built again: $EVMPERF_CACHE or the user's cache."""
    if own := os.environ.get("EVMPERF_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evmperf"


def state_dir() -> Path:
    """Return the folder for running boards and their disks, and make it, for this user only.

    On a disk, not in /run: a benchmark may fill a board's eMMC, and /run is memory.
    """
    if own := os.environ.get("EVMPERF_STATE"):
        path = Path(own).absolute()
    else:
        base = os.environ.get("XDG_STATE_HOME")
        path = (Path(base) if base else Path.home() / ".local" / "state") / "evmperf"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
