"""Writing the site: a process for each core works through the boards, then the fleet's page."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from evmperf.judge import accepted
from evmperf.measure.runs.history import GUIDE, RunSource, StoredRun
from evmperf.model.errors import LabError, UsageError
from evmperf.model.verdict import Outcome
from evmperf.publish.pages import look
from evmperf.publish.site import board
from evmperf.publish.site.board import BoardSummary, FigureCounts, SiteJob
from evmperf.publish.site.pages import Folder, is_published

_IN = " in "
_MOST = 100
"""Changes of the fleet on its page; each board's page has all of its own."""


@dataclass(frozen=True)
class Written:
    """How many boards and runs, and the bytes of each page."""

    boards: int
    runs: int
    pages: Sequence[int]


def write(out: Path, source: RunSource, reports: str = "") -> Written:
    """Write the site of all runs into a folder; what is there is written over. `reports` is the address at
    which the runs' folders can be seen (`https://lab/results`), or `copied` for copies of the reports within
    the site; without it, points lead to the reports where they lie, as far as they do. Raises UsageError when
    there are no runs, LabError when the disk does not take the pages.
    """
    jobs = _jobs(out, reports, source)
    if not jobs:
        raise UsageError(f"{source}: holds no runs to make a site of; measure a board first")
    try:
        look.write(out / "static")
        summaries = _boards(jobs)
        pages = _write_fleet(out, [one for one in summaries if one.runs])
    except OSError as error:
        raise LabError(f"{out}: cannot be written: {error.strerror}") from error
    sizes = [*(size for one in summaries for size in one.pages), *pages]
    return Written(len(jobs), sum(len(job.runs) for job in jobs), sizes)


def _jobs(out: Path, reports: str, source: RunSource) -> list[SiteJob]:
    """The jobs of all boards, the largest first; boards of several labs have the lab in their name."""
    # No guide and nothing that was varied: these tell nothing of the board as it is.
    entries = [e for e in source.runs() if e.run.kind != GUIDE and not e.run.facts.variation]
    labs = Counter(name for name, lab in {(e.run.board, e.run.lab) for e in entries} if lab)
    boards: dict[str, list[StoredRun]] = {}
    for entry in entries:
        run = entry.run
        name = f"{run.board}{_IN}{run.lab}" if run.lab and labs[run.board] > 1 else run.board
        renamed = replace(entry, run=msgspec.structs.replace(run, board=name))
        boards.setdefault(name, []).append(renamed)
    marks = accepted.read()
    jobs = []
    for name, runs in boards.items():
        # Accepted changes of a board are those of any lab.
        mine = [replace(mark, board=name) for mark in marks if mark.board == name.partition(_IN)[0]]
        jobs.append(SiteJob(Folder(out, reports), name, runs, mine))
    return sorted(jobs, key=lambda job: -len(job.runs))


def _boards(jobs: Sequence[SiteJob]) -> list[BoardSummary]:
    """Write each board's pages, in processes of their own where the runs can be read there; by name."""
    workers = min(os.cpu_count() or 1, len(jobs))
    if workers < 2 or not all(entry.folder for job in jobs for entry in job.runs):
        summaries = [*map(board.write, jobs)]
    else:
        # A caller may have threads, which a forked process must not inherit.
        context = multiprocessing.get_context("spawn")
        # The processes take all cores: linear algebra with threads of its own would only wait for them.
        single = ("OPENBLAS_NUM_THREADS", "1")
        with ProcessPoolExecutor(workers, context, initializer=os.putenv, initargs=single) as pool:
            summaries = [*pool.map(board.write, jobs)]
    return sorted(summaries, key=lambda summary: summary.board)


def _write_fleet(out: Path, boards: Sequence[BoardSummary]) -> list[int]:
    """Write the fleet's page and the shared files; returns the bytes of the page. Raises OSError."""
    folder = Folder(out, "")
    worse = [change for one in boards for change in one.changes if change.state == Outcome.WORSE]
    folder.page(
        "index.html",
        "fleet.html.j2",
        boards=boards,
        counts=sum((one.counts for one in boards), FigureCounts()),
        worse=sorted(worse, key=lambda one: one.run.started_ns, reverse=True)[:_MOST],
        undecided=[change for one in boards for change in one.undecided],
        published=bool(boards) and all(is_published(one.run) for one in boards),
        more=len(worse) - _MOST,
        guide=(out / "guide/index.html").is_file(),
    )
    folder.file("static/site.js", Path(__file__).with_name("site.js").read_text(encoding="utf-8"))
    return folder.sizes
