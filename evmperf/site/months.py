"""The pages of a board's months: each run, its report, and what differs from the run before."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evmperf.runs import differences
from evmperf.runs.differences import Difference
from evmperf.runs.history import StoredRun
from evmperf.site import names
from evmperf.site.pages import Folder, kernel

_MOST = 12
"""Differences of one area on the page: a new kernel changes thousands of options."""


@dataclass(frozen=True)
class Area:
    """What differs in one area: its first differences, and how many there are."""

    name: str
    entries: Sequence[Difference]
    count: int


def write(folder: Folder, board: str, entries: Sequence[StoredRun]) -> list[tuple[str, int]]:
    """Write a page a month; returns the months, newest first, with their number of runs. Raises
    OSError when the disk does not take one.
    """
    before = dict(zip([e.run.id for e in entries[1:]], entries, strict=False))
    wrote = []
    groups = itertools.groupby(reversed(entries), key=lambda entry: names.month(entry.run))
    for month, group in groups:
        there = list(group)
        folder.page(
            f"{names.slug(board)}/{month}.html",
            "month.html.j2",
            board=board,
            month_=month,
            entries=there,
            report=folder.report,
            kernel=kernel,
            before=lambda entry: before.get(entry.run.id),
            areas=lambda one, other: list(_areas(one, other)),
        )
        wrote.append((month, len(there)))
    return wrote


def _areas(one: StoredRun, other: StoredRun) -> Iterator[Area]:
    found = differences.between_runs(one, other)
    for name, group in itertools.groupby(found, key=lambda entry: entry.area):
        there = list(group)
        yield Area(name, there[:_MOST], len(there))
