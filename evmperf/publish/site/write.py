"""Writing the site: a process for each core works through the boards, then the fleet's page."""

import functools
import gc
import itertools
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from evmperf.benchmarks import wording
from evmperf.judge import accepted
from evmperf.measure.runs.history import GUIDE, RunSource, SpoolFolder, StoredRun, WithHistory, by_age
from evmperf.model import outlets
from evmperf.model.errors import LabError, UsageError
from evmperf.model.figures import Key
from evmperf.publish.pages import look
from evmperf.publish.site import board
from evmperf.publish.site.board import BoardSummary, Reader, SiteJob, headline, state
from evmperf.publish.site.pages import Folder, is_published, slug

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
        alone = all(isinstance(source, SpoolFolder | _OfLabs) for source in sources)
        summaries = list(_boards(jobs, alone=alone))
        pages = _write_fleet(out, [one for one in summaries if one.runs])
    except OSError as error:
        raise LabError(f"{out}: cannot be written: {error.strerror}") from error
    sizes = [*(size for one in summaries for size in one.pages), *pages]
    problems += [problem for one in summaries for problem in one.problems]
    runs = sum(one.given for one in summaries)
    return Written(out / "index.html", len(summaries), runs, len(sizes), max(sizes), problems)


def _jobs(
    out: Path, reports: str, sources: Iterable[RunSource], problems: list[str]
) -> list[tuple[int, SiteJob]]:
    """The jobs of all boards, with about how many runs; boards of several labs have the lab in their name."""
    board_parts = [part for source in sources for part in _parts(source, problems)]
    labs: dict[str, set[str]] = {}
    for lab, name, _, _ in board_parts:
        labs.setdefault(name, set()).update({lab} - {""})
    boards: dict[str, list[tuple[int, Reader]]] = {}
    for lab, name, count, read in board_parts:
        several = lab and len(labs[name]) > 1
        boards.setdefault(f"{name}{_IN}{lab}" if several else name, []).append((count, read))
    jobs, marks = [], accepted.read()
    for name, parts in sorted(boards.items()):
        # Accepted changes of a board are those of any lab.
        mine = [replace(mark, board=name) for mark in marks if mark.board == name.partition(_IN)[0]]
        jobs.append((sum(n for n, _ in parts), SiteJob(out, reports, name, [r for _, r in parts], mine)))
    return jobs


@runtime_checkable
class _OfLabs(Protocol):
    def parts(self) -> Iterator[tuple[str, str, int, Reader]]: ...


def _parts(source: RunSource, problems: list[str]) -> Iterator[tuple[str, str, int, Reader]]:
    """Each board of a source: lab, name, number of runs, and what reads them. A store is read when its
    board is written: the runs of a large lab are more than should be held at once.
    """
    if isinstance(source, _OfLabs):
        yield from source.parts()
        return
    runs = source.runs(left_out=problems.append) if isinstance(source, SpoolFolder) else source.runs()
    kept: dict[tuple[str, str], list[StoredRun]] = {}
    for entry in filter(_tells, runs):
        kept.setdefault((entry.run.lab, entry.run.board), []).append(entry)
    for (lab, name), entries in kept.items():
        yield lab, name, len(entries), functools.partial(list, entries)


def _tells(entry: StoredRun) -> bool:
    """Whether a run tells of its board as it is: no guide, nothing that was varied."""
    return entry.run.kind != GUIDE and not entry.run.facts.variation


def _entries(job: SiteJob) -> list[StoredRun]:
    """A board's runs, oldest first, each once, under the board's name in the site."""
    by_id: dict[tuple[str, str], StoredRun] = {}
    for entry in filter(_tells, itertools.chain.from_iterable(read() for read in job.parts)):
        run = msgspec.structs.replace(entry.run, board=job.board)
        by_id.setdefault((run.lab, run.id), replace(entry, run=run))
    return sorted(by_id.values(), key=lambda entry: by_age(entry.run))


def _boards(jobs: Sequence[tuple[int, SiteJob]], *, alone: bool) -> Iterator[BoardSummary]:
    """Write each board's pages, in processes of their own where the runs can be read there."""
    workers = min(os.cpu_count() or 1, len(jobs))
    if not alone or workers < 2:
        yield from filter(None, (_write(job) for _, job in jobs))
        return
    # The largest first, so that no core waits for another at the end.
    order = sorted(range(len(jobs)), key=lambda number: -jobs[number][0])
    # A caller may have threads, which a forked process must not inherit.
    context = multiprocessing.get_context("spawn")
    # The processes take all cores: linear algebra with threads of its own would only wait for them.
    single = ("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, context, initializer=os.putenv, initargs=single) as pool:
        summaries = dict(zip(order, pool.map(_write, [jobs[n][1] for n in order]), strict=True))
    yield from filter(None, (summaries[number] for number in range(len(jobs))))


def _write(job: SiteJob) -> BoardSummary | None:
    """Write a board's pages; None for one whose runs are gone. A million figures live until their board is
    written: looking for garbage among them would cost a third of the time.
    """
    gc.disable()
    try:
        entries = _entries(job)
        return board.write(job, entries) if entries else None
    finally:
        gc.enable()
        gc.collect()


def _write_fleet(out: Path, boards: Sequence[BoardSummary]) -> list[int]:
    """Write the fleet's page and the shared files; returns the bytes of the page. Raises OSError."""
    folder = Folder(out, "")
    changes = sorted(
        (change for board in boards for change in board.changes),
        key=lambda change: change.run.started_ns,
        reverse=True,
    )
    worse = [change for change in changes if change.alarming]
    news = sum((one.news for one in boards), Counter())
    words = sum((one.words for one in boards), Counter())
    period = max((one.period for one in boards), default="")  # "within" is after "since"
    goals = [one for board in boards for one in board.goals]
    folder.page(
        "index.html",
        "fleet.html.j2",
        boards=boards,
        goals=[(one.board, one.goals) for one in boards],
        worse=worse[:_MOST],
        published=bool(boards) and all(is_published(board.run) for board in boards),
        more=len(worse) - _MOST,
        guide=(out / _GUIDE_PAGE).is_file(),
        state=state(news, words, goals),
        headline=headline(sum(one.figures for one in boards), news, words, period, goals),
    )
    folder.file("static/search.js", f"evmperf_search = {_index(boards)};\n")
    script = Path(__file__).with_name("site.js").read_text(encoding="utf-8")
    folder.file("static/site.js", script)
    return folder.sizes


def _index(boards: Sequence[BoardSummary]) -> str:
    """Boards with their cases: a case is named once for all boards that have it."""
    rows: dict[tuple[str, str], int] = {}
    texts = []
    for one in boards:
        for (benchmark, case), metrics in one.cases.items():
            if (benchmark, case) not in rows:
                rows[benchmark, case] = len(rows)
                sentence = wording.figure(Key(benchmark, case, ""))
                place = f"{slug(benchmark)}/{slug(case)}.html"
                texts.append((benchmark, case, sentence, " ".join(metrics), place))
    whose = [(b.board, slug(b.board), [rows[key] for key in b.cases]) for b in boards]
    return outlets.script(json.dumps({"cases": texts, "boards": whose}, separators=(",", ":")))
