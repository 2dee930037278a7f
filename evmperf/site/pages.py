"""Putting a page of the site on the disk."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evmperf.benchmarks import wording
from evmperf.model.exits import SIGNS
from evmperf.model.outlets import address
from evmperf.model.run import Run
from evmperf.model.stats import percent
from evmperf.pages import look
from evmperf.pages.templates import environment
from evmperf.runs.history import StoredRun
from evmperf.site import names

COPIED = "copied"
"""Said in place of an address: the reports belong to the site."""


@dataclass
class Folder:
    """The site below `out`; `sizes` are the bytes of each page written."""

    out: Path
    reports: str
    """Address of the runs' folders; COPIED for copies within the site, "" for where they lie."""
    sizes: list[int] = field(default_factory=list)

    def page(self, place: str, template: str, **values: Any) -> None:
        """Write a page at a place below `out`; raises OSError when the disk does not take it."""
        root = "../" * place.count("/")
        text = (
            environment("evmperf.site")
            .get_template(template)
            .render(
                look=look.linked(f"{root}static/"),
                root=root,
                slug=names.slug,
                day=names.day,
                time=names.time,
                is_published=names.is_published,
                month=names.month,
                amount=amount,
                number=number,
                wording=wording,
                signs=SIGNS,
                **values,
            )
        )
        self.sizes.append(self.file(place, text))

    def file(self, place: str, text: str) -> int:
        """Write a file; returns its bytes."""
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_bytes(text.encode())

    def report(self, entry: StoredRun) -> str:
        """The address of a run's report, seen from `out`; "" where there is none. Raises OSError
        when it cannot be copied.
        """
        if self.reports not in ("", COPIED):
            return address(f"{self.reports.rstrip('/')}/{quote(entry.run.id)}/report.html")
        report = entry.folder / "report.html" if entry.folder else None
        if report is None or not report.is_file():
            return address(entry.run.report)
        if self.reports == COPIED:
            copy = self.out / "reports" / f"{names.slug(entry.run.id)}.html"
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists() or copy.stat().st_mtime < report.stat().st_mtime:
                shutil.copy(report, copy)
            report = copy
        return quote(os.path.relpath(report, self.out))


def amount(change: float | None) -> str:
    """A relative change, "" where it cannot be told."""
    return "" if change is None else percent(change)


def number(value: float) -> str:
    """A figure in five digits."""
    return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"


def kernel(run: Run) -> str:
    """The kernel that a run was measured with, "" where it is not known."""
    return run.facts.kernel
