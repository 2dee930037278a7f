"""The record as runs and baselines, so that history, check, site and guide read it like a lab's own."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import astuple

from evmperf.judge.published import identity, record
from evmperf.judge.published.record import Entry, PublishedCase
from evmperf.measure.runs.history import GUIDE, StoredRun, by_age
from evmperf.model.facts import Facts
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.results import Published, Result, Sample, Status
from evmperf.model.run import FOREIGN, Run

KIND = "published"
"""Kind of a run of the record that stands among measured ones."""


class PublishedRuns:
    """The record as a RunSource. A run is a board in a release, in the order of its releases: of several
    guides of one, the newest figures. A mean stands for a sample where `samples`; else the runs are guides.
    """

    def __init__(self, samples: bool = True) -> None:
        self.samples = samples

    def __str__(self) -> str:
        return "the published figures"

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See RunSource."""
        stored_runs = [_run(entries, self.samples) for entries in _releases()]
        mine = [e for e in stored_runs if board is None or identity.same(e.run.board, board)]
        return sorted(mine, key=lambda entry: by_age(entry.run))


def guides(board: str | None = None) -> list[StoredRun]:
    """The record as guides: a run a board and release, whose figures are published ones."""
    return PublishedRuns(samples=False).runs(board)


def baseline(run: Run) -> Baseline | None:
    """The published figures of a run's board and operating system, of the newest release that is not
    after the run's (of the newest at all, where its release is not known); None if there are none.
    """
    return nearest(run, baselines(run))


def nearest(run: Run, candidates: Sequence[Baseline]) -> Baseline | None:
    """The one of `baseline` among those of `baselines`."""
    own = record.same_time(run.release)
    before = [b for b in candidates if own and record.same_time(b.published.release) <= own]
    return next(reversed(before or candidates), None)


def baselines(run: Run) -> list[Baseline]:
    """Those of every release, oldest first; none for virtual boards and for
    figures of others, never compared with real ones."""
    if run.facts.virtual or run.kind == FOREIGN:
        return []
    return [Baseline(run, *one) for one in _figures(identity.board(run.board), run.os)]


@functools.cache
def _figures(board: str, os: str) -> list[tuple[Run, dict[Key, Figure]]]:
    mine = (entry for entry in guides(board) if os in ("", entry.run.os))
    return [(entry.run, figures(entry.results())) for entry in mine]


def doubts(run: Run, figures: Mapping[Key, Figure]) -> dict[Key, str]:
    """Why published figures of a run are not judged, by key: as guide-reader or the record says it."""
    if run.kind != KIND:
        return {key: figure.doubt for key, figure in figures.items() if figure.doubt}
    time = record.same_time(run.release)
    releases = _figures(identity.board(run.board), run.os)
    printed = next((cells for guide, cells in releases if record.same_time(guide.release) == time), {})
    return {key: printed[key].doubt for key in figures if key in printed and printed[key].doubt}


@functools.cache
def places(board: str) -> Mapping[tuple[str, str], list[str]]:
    """Where each case of a board stands, by benchmark and case: release, system, guide and line."""
    by_case: dict[tuple[str, str], list[str]] = {}
    for entry in record.of_board(identity.board(board)):
        for case in entry.cases:
            lines = ", ".join(str(line) for line in sorted({v.line for v in case.values}))
            place = f"{entry.release} {entry.os}: {entry.guide}, line {lines}"
            by_case.setdefault((case.benchmark, case.name), []).append(place)
    return by_case


def _releases() -> list[list[Entry]]:
    """The entries of each board, system and release, oldest release first."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[Entry]] = {}
    for entry in sorted(record.entries(), key=lambda e: (e.board, e.os, e.place)):
        key = (entry.board, entry.os, record.same_time(entry.release))
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _run(entries: list[Entry], samples: bool) -> StoredRun:
    last = entries[-1]
    run = Run(
        id=f"{GUIDE}-{last.release}-{last.os}-{last.board}",
        board=last.board,
        profile="full",
        kind=KIND if samples else GUIDE,
        release=last.release,
        os=last.os,
        started_ns=_time(last),
        exit_status=0,
        outcome="imported from a published guide",
        facts=Facts(guide=last.guide, guide_sha256=last.sha256, release_from="date" if last.dated else ""),
    )

    return StoredRun(run, lambda: results(entries, samples=samples))


def results(entries: Sequence[Entry], *, samples: bool) -> list[Result]:
    """The results of a board's guides of one release: of a row in several of them, the newest."""
    newest = {(case.benchmark, case.name): (case, entry) for entry in entries for case in entry.cases}
    return [_result(case, samples, _time(entry)) for case, entry in newest.values()]


def _time(entry: Entry) -> int:
    """When a release was in work, in ns since the epoch: some guides were corrected years later."""
    days, minutes = (*record.release_key(entry.release), 0, 0, 0, 0)[2:4]
    began = datetime.fromisoformat(record.began(entry.release)).replace(tzinfo=UTC)
    return int((began + timedelta(days=days, minutes=minutes)).timestamp()) * 10**9


def _result(case: PublishedCase, samples: bool, time_ns: int) -> Result:
    return Result(
        benchmark=case.benchmark,
        version=0,
        driver=case.driver,
        case=case.name,
        params={},
        profile="full",
        status=Status.MEASURED,
        samples=tuple(Sample(v.metric, v.mean, v.unit, 0, time_ns) for v in case.values if samples),
        tools={case.tool: ""} if case.tool else {},
        conditions=case.words,
        started_ns=time_ns,
        published=() if samples else tuple(Published(*astuple(value)) for value in case.values),
    )
