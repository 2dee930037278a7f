"""Putting a page of the site on the disk, and the names of its files and folders."""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from evmperf.judge.published import source
from evmperf.measure.runs.history import StoredRun
from evmperf.model.outlets import address
from evmperf.model.run import Run
from evmperf.model.stats import brief, percent
from evmperf.publish.pages import look

_SAFE = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")
_TAKEN = ("index", "static", "guide", "reports")
"""What the site itself has beside boards and cases."""
COPIED = "copied"
"""Said in place of an address: the reports belong to the site."""


@dataclass
class Folder:
    """The site below `out`; `sizes` are the bytes of each page written."""

    out: Path
    reports: str
    """Address of the runs' folders; COPIED for copies within the site, "" for where they lie."""
    sizes: list[int] = field(default_factory=list)

    def page(self, place: str, template: str, **values: object) -> None:
        """Write a page at a place below `out`; raises OSError when the disk does not take it."""
        root = "../" * place.count("/")
        linked = look.linked(f"{root}static/")
        text = look.render(f"publish/site/{template}", look=linked, root=root, **_HELPERS, **values)
        self.sizes.append(self.file(place, text))

    def file(self, place: str, text: str) -> int:
        """Write a file; returns its bytes."""
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_bytes(text.encode())

    def report(self, entry: StoredRun) -> str:
        """The address of a run's report, seen from `out`, "" without one; raises OSError if not copied."""
        if self.reports not in ("", COPIED):
            return address(f"{self.reports.rstrip('/')}/{quote(entry.run.id)}/report.html")
        report = entry.folder / "report.html" if entry.folder else None
        if report is None or not report.is_file():
            return address(entry.run.report)
        if self.reports == COPIED:
            copy = self.out / "reports" / f"{slug(entry.run.id)}.html"
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists() or copy.stat().st_mtime < report.stat().st_mtime:
                shutil.copy(report, copy)
            report = copy
        return quote(os.path.relpath(report, self.out))


def amount(change: float | None) -> str:
    """A relative change, "" where it cannot be told."""
    return "" if change is None else percent(change)


def slug(name: str) -> str:
    """A file name for a board, benchmark or case, unique also where a file system takes `A` for `a`."""
    if _SAFE.fullmatch(name) and name not in _TAKEN:
        return name
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:40]
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{cleaned}-{digest}" if cleaned else digest


def day(run: Run) -> str:
    """The day on which a run began, UTC; the release of a published one, which has no day."""
    return f"release {run.release}" if is_published(run) else time(run)[:10]


def is_published(run: Run) -> bool:
    """Whether a run is a published guide's, whose time only gives its place among the releases."""
    return run.kind == source.KIND


def time(run: Run) -> str:
    """When a run began, for people, UTC."""
    return f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d %H:%M}"


_HELPERS = {function.__name__: function for function in (slug, day, time, is_published, amount, brief)}
