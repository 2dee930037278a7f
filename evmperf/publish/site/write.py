"""Writing the site: a process for each core works through the boards, then the fleet's page."""

import itertools
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from evmperf.judge import accepted
from evmperf.measure.runs.history import GUIDE, RunSource, SpoolFolder, StoredRun, WithHistory, by_age
from evmperf.model.errors import LabError, UsageError
from evmperf.publish.pages import look
from evmperf.publish.site import board
from evmperf.publish.site.board import BoardSummary, FigureCounts, SiteJob
from evmperf.publish.site.pages import Folder, is_published

_GUIDE_PAGE = "guide/index.html"
"""Where the performance guide is, if it is part of the site."""
_IN = " in "
_MOST = 100
"""Changes of the fleet on its page; each board's page has all of its own."""


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
    several have, the first one's counts. `reports` is the address at which the runs' folders can be seen
    (`https://lab/results`), or `copied` for copies of the reports within the site; without it, points lead to
    the reports where they lie, as far as they do. Raises UsageError when there are no runs, LabError when the
    disk does not take the pages.
    """
    parts = (one.sources if isinstance(one, WithHistory) else (one,) for one in sources)
    sources = tuple(itertools.chain.from_iterable(parts))
    problems: list[str] = []
    jobs = _jobs(out, reports, sources, problems)
    if not jobs:
        where = ", ".join(map(str, sources))
        raise UsageError(f"{where}: holds no runs to make a site of; measure a board first")
    try:
        look.write(out / "static")
        alone = all(isinstance(source, SpoolFolder) for source in sources)
        summaries = _boards(jobs, alone=alone)
        pages = _write_fleet(out, [one for one in summaries if one.runs])
    except OSError as error:
        raise LabError(f"{out}: cannot be written: {error.strerror}") from error
    sizes = [*(size for one in summaries for size in one.pages), *pages]
    problems += [problem for one in summaries for problem in one.problems]
    runs = sum(one.given for one in summaries)
    return Written(out / "index.html", len(summaries), runs, len(sizes), max(sizes), problems)


def _jobs(out: Path, reports: str, sources: Iterable[RunSource], problems: list[str]) -> list[SiteJob]:
    """The jobs of all boards, the largest first; boards of several labs have the lab in their name."""
    runs: dict[tuple[str, str], dict[str, StoredRun]] = {}
    for source in sources:
        told = source.runs(left_out=problems.append) if isinstance(source, SpoolFolder) else source.runs()
        for entry in told:
            # No guide and nothing that was varied: these tell nothing of the board as it is.
            if entry.run.kind != GUIDE and not entry.run.facts.variation:
                runs.setdefault((entry.run.board, entry.run.lab), {}).setdefault(entry.run.id, entry)
    labs = Counter(name for name, lab in runs if lab)
    boards: dict[str, list[StoredRun]] = {}
    for (name, lab), entries in runs.items():
        title = f"{name}{_IN}{lab}" if lab and labs[name] > 1 else name
        renamed = (replace(e, run=msgspec.structs.replace(e.run, board=title)) for e in entries.values())
        boards.setdefault(title, []).extend(renamed)
    marks = accepted.read()
    jobs = []
    for name, found in boards.items():
        # Accepted changes of a board are those of any lab.
        mine = [replace(mark, board=name) for mark in marks if mark.board == name.partition(_IN)[0]]
        found.sort(key=lambda entry: by_age(entry.run))
        jobs.append(SiteJob(out, reports, name, found, mine))
    return sorted(jobs, key=lambda job: -len(job.runs))


def _boards(jobs: Sequence[SiteJob], *, alone: bool) -> list[BoardSummary]:
    """Write each board's pages, in processes of their own where the runs can be read there; by name."""
    workers = min(os.cpu_count() or 1, len(jobs))
    if not alone or workers < 2:
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
    changes = sorted(
        (change for board in boards for change in board.changes),
        key=lambda change: change.run.started_ns,
        reverse=True,
    )
    worse = [change for change in changes if change.alarming]
    undecided = [change for board in boards for change in board.undecided]
    folder.page(
        "index.html",
        "fleet.html.j2",
        boards=boards,
        counts=sum((one.counts for one in boards), FigureCounts()),
        worse=worse[:_MOST],
        undecided=sorted(undecided, key=lambda one: one.size, reverse=True),
        published=bool(boards) and all(is_published(board.run) for board in boards),
        more=len(worse) - _MOST,
        guide=(out / _GUIDE_PAGE).is_file(),
    )
    script = Path(__file__).with_name("site.js").read_text(encoding="utf-8")
    folder.file("static/site.js", script)
    return folder.sizes
