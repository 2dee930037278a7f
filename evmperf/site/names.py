"""Names of the site's files and folders."""

import functools
import hashlib
import re
from datetime import UTC, datetime

from evmperf.model.run import Run
from evmperf.published import source

_SAFE = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")
_TAKEN = ("index", "static", "guide", "reports")
"""What the site itself has beside boards and cases."""


@functools.lru_cache(10_000)
def slug(name: str) -> str:
    """A file name for a board, benchmark or case, the same wherever it is asked for, and never that
    of another, also where a file system takes `A` for `a`.
    """
    if _SAFE.fullmatch(name) and name not in _TAKEN:
        return name
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:40]
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{cleaned}-{digest}" if cleaned else digest


def month(run: Run) -> str:
    """The month in which a run began, as `2026-11`, UTC."""
    return f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m}"


def day(run: Run) -> str:
    """The day on which a run began, UTC; the release of a published one, which has no day."""
    return f"release {run.release}" if is_published(run) else time(run)[:10]


def is_published(run: Run) -> bool:
    """Whether a run is a published guide's, whose time only gives its place among the releases."""
    return run.kind == source.KIND


def time(run: Run) -> str:
    """When a run began, for people, UTC."""
    return f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d %H:%M}"
