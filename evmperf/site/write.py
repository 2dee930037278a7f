"""Writing the site: a process for each core works through the boards, then the fleet's page."""

import contextlib
import dataclasses
import gc
import itertools
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evmperf.model.errors import LabError, UsageError
from evmperf.pages import look
from evmperf.regress import accepted
from evmperf.regress.accepted import Accepted
from evmperf.runs.history import GUIDE, RunSource, SpoolFolder, StoredRun, WithHistory, by_age
from evmperf.site import board, fleet
from evmperf.site.board import BoardSummary, SiteJob
from evmperf.store.source import StoredRuns


@dataclass(frozen=True)
class Written:
    """Number of pages, bytes of the largest, and a sentence for each unreadable run."""

    index: Path
    boards: int
    runs: int
    pages: int
    largest: int
    problems: Sequence[str]


def write(out: Path, *sources: RunSource, reports: str = "") -> Written:
    """Write the site of all runs of some sources into a folder; what is there is written over. Of a run that
    several have, the first one's counts.

    `reports` is the address at which the runs' folders can be seen (`https://lab/results`), or `copied` for
    copies of the reports within the site; without it, points lead to the reports where they lie, as far as
    they do. Raises UsageError when there are no runs, LabError when the disk does not take the pages.
    """
    parts = (one.sources if isinstance(one, WithHistory) else (one,) for one in sources)
    sources = tuple(itertools.chain.from_iterable(parts))
    problems: list[str] = []
    boards: dict[str, list[StoredRun]] = {}
    for entry in _apart(_runs(sources, problems)):
        boards.setdefault(entry.run.board, []).append(entry)
    if not boards:
        where = ", ".join(map(str, sources))
        raise UsageError(f"{where}: holds no runs to make a site of; measure a board first")
    marks = accepted.read()
    jobs = [SiteJob(out, reports, of, _of(name, marks)) for name, of in sorted(boards.items())]
    try:
        look.write(out / "static")
        alone = all(isinstance(source, SpoolFolder | StoredRuns) for source in sources)
        summaries = list(_boards(jobs, alone=alone))
        pages = fleet.write(out, [one for one in summaries if one.runs])
    except OSError as error:
        raise LabError(f"{out}: cannot be written: {error.strerror}") from error
    sizes = [*(size for one in summaries for size in one.pages), *pages]
    problems += [problem for one in summaries for problem in one.problems]
    runs = sum(map(len, boards.values()))
    return Written(out / "index.html", len(boards), runs, len(sizes), max(sizes), problems)


def _runs(sources: Iterable[RunSource], problems: list[str]) -> Iterable[StoredRun]:
    """All runs that tell of a board as it is, oldest first: no guides, nothing that was varied."""
    found: dict[tuple[str, str, str], StoredRun] = {}
    for source in sources:
        there: Iterable[StoredRun] = (
            source.everything(problems.append) if isinstance(source, SpoolFolder) else source.everything()
        )
        for entry in there:
            if entry.run.kind != GUIDE and not entry.run.facts.variation:
                found.setdefault((entry.run.lab, entry.run.board, entry.run.id), entry)
    return sorted(found.values(), key=lambda entry: by_age(entry.run))


def _apart(entries: Iterable[StoredRun]) -> Iterator[StoredRun]:
    """The runs, with the lab in the names of boards that several labs have."""
    there = list(entries)
    labs: dict[str, set[str]] = {}
    for entry in there:
        labs.setdefault(entry.run.board, set()).update({entry.run.lab} - {""})
    for entry in there:
        run = entry.run
        if run.lab and len(labs[run.board]) > 1:
            run = msgspec.structs.replace(run, board=f"{run.board}{_IN}{run.lab}")
        yield dataclasses.replace(entry, run=run)


_IN = " in "


def _of(board: str, marks: Iterable[Accepted]) -> list[Accepted]:
    """The accepted changes of a board, whatever its lab."""
    name = board.partition(_IN)[0]
    return [dataclasses.replace(mark, board=board) for mark in marks if mark.board == name]


def _boards(jobs: Sequence[SiteJob], *, alone: bool) -> Iterator[BoardSummary]:
    """Write each board's pages, in processes of their own where the runs can be read there."""
    workers = min(os.cpu_count() or 1, len(jobs))
    if not alone or workers < 2:
        yield from map(board.write, jobs)
        return
    # The largest first, so that no core waits for another at the end.
    order = sorted(range(len(jobs)), key=lambda number: -len(jobs[number].entries))
    # A caller may have threads, which a forked process must not inherit.
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        # A million figures live until their board is written: looking for garbage among them costs
        # a third of the time.
        pool = stack.enter_context(ProcessPoolExecutor(workers, context, initializer=gc.disable))
        found = dict(zip(order, pool.map(_write, [jobs[n] for n in order]), strict=True))
    yield from (found[number] for number in range(len(jobs)))


def _write(job: SiteJob) -> BoardSummary:
    gc.collect()
    return board.write(job)
