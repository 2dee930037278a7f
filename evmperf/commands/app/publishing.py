"""What is made of runs for others: a guide, the site, the database's points."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evmperf.commands.app import sources
from evmperf.commands.app.requests import Hear, Keep, Produced, Push, WriteGuide, WriteSite
from evmperf.guides.published import releases, steady
from evmperf.guides.published import source as published
from evmperf.guides.reading import conditions, importer
from evmperf.measure.runs.history import GUIDE, StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.replies import Remark
from evmperf.model.units import counted
from evmperf.publish import site as sites
from evmperf.publish.guide import layout, writer
from evmperf.publish.guide.layout import Figures, Layout
from evmperf.publish.guide.writer import Extras, Head
from evmperf.publish.influx import config as configs
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import RunPush, waiting

_EXTRAS = ("counts", "delta", "outliers")
"""What may stand beside the figures of a guide."""


def guide(request: WriteGuide, hear: Hear) -> Produced:
    """Write a guide; raises UsageError for an unknown release or extra."""
    rendered(request)
    return Produced(sentence=request.output)


def rendered(request: WriteGuide) -> tuple[str, Head, Layout]:
    """The text of a guide, its cover and its layout; with an `output` they are written, and the figures'
    conditions beside them. Raises UsageError for an unknown release.
    """
    if wrong := sorted(set(request.extras) - set(_EXTRAS)):
        raise UsageError(f"{wrong[0]!r} is not one of {', '.join(_EXTRAS)}")
    with sources.opened(request.source, samples=False) as source:
        there = releases.stored(source)
        chosen = releases.of_release(there, request.release, request.os, request.board)
        figures = releases.by_board(chosen)
        # A board that was measured in U-Boot alone tells neither.
        release = next((entry.run.release for entry in reversed(chosen) if entry.run.release), "")
        os = next((entry.run.os for entry in reversed(chosen) if entry.run.os), "Linux")
        if request.like:
            plan = layout.like(importer.load(Path(request.like), release), figures)
        else:
            plan = layout.own(figures)
        extras = _extras(request, chosen, there, figures)
        facts = tuple(_facts(figures, chosen, extras))
        head = Head(release, os, releases.modules(figures), tuple(figures), facts)
        text = writer.render(plan, figures, head, extras)
        if request.output:
            Path(request.output).write_text(text, encoding="utf-8")
            conditions.write(Path(request.output), figures, [entry.run for entry in chosen])
    return text, head, plan


def _facts(figures: Figures, chosen: list[StoredRun], extras: Extras) -> Iterator[str]:
    yield from writer.sentences(figures)
    days = sorted(
        datetime.fromtimestamp(entry.run.started_ns / 1e9, UTC).date().isoformat()
        for entry in chosen
        if entry.run.kind != GUIDE
    )
    if days:
        first, last = days[0], days[-1]
        yield f"Measured {f'on {first}' if first == last else f'from {first} to {last}'}."
    if extras.previous:
        yield f"Changes are shown since release {extras.before}."


def _extras(request: WriteGuide, chosen: list[StoredRun], there: list[StoredRun], figures: Figures) -> Extras:
    previous, last = None, ""
    doubtful: frozenset[tuple[str, Key]] = frozenset()
    if "delta" in request.extras:
        known = there if request.source in ("baselines", "published") else [*published.guides(), *there]
        before = [
            found for entry in chosen if (found := releases.previous_release(known, entry.run)) is not None
        ]
        previous = releases.by_board(before)
        sides = ((before, previous), (chosen, figures))
        doubtful = frozenset(
            (entry.run.board, key)
            for entries, known in sides
            for entry in entries
            for key in steady.doubts(entry.run, known.get(entry.run.board, {}))
        )
        last = " and ".join(dict.fromkeys(entry.run.release for entry in before))
    return Extras(
        counts="counts" in request.extras,
        outliers="outliers" in request.extras,
        previous=previous,
        before=last,
        os=chosen[0].run.os if chosen else "",
        doubtful=doubtful,
    )


def push(request: Push, hear: Hear) -> Produced:
    """Send what is not in the database yet; raises as `sent` does."""
    lines = []
    for said, problem in sent(Path(request.results)):
        lines.append(said)
        if problem:
            hear(Remark(sentence=problem))
    return Produced(sentence="; ".join(lines) or "nothing to send")


def sent(results: Path, runs: Sequence[Path] = ()) -> Iterator[tuple[str, str]]:
    """Send what is not in the database yet, or these `runs` as a whole; yields for each run what was
    sent and what went wrong ("" for nothing), in sentences. Raises UsageError where no database is
    configured, LabError when it cannot be reached.
    """
    config = configs.required()
    with Store(config) as store:
        for folder in runs or waiting(results, config.key, begun=False):
            pushed = RunPush.of(store, folder, again=bool(runs)).send()
            more = "" if pushed.complete else "; it is still being measured"
            yield f"{folder.name}: {counted(pushed.points, 'point')}{more}", pushed.problem


def site(request: WriteSite, hear: Hear) -> Produced:
    """Write the site; raises UsageError when there are no runs, LabError for the disk."""
    with sources.opened(request.source, Path(request.results)) as source:
        written = sites.write(Path(request.output), source, reports=request.reports)
    for problem in written.problems:
        hear(Remark(sentence=problem))
    return Produced(
        sentence=f"{written.index}: {counted(written.runs, 'run')} of "
        f"{counted(written.boards, 'board')} on {counted(written.pages, 'page')}, "
        f"the largest {written.largest / 1e6:.2f} MB"
    )


def keep(request: Keep, hear: Hear) -> Produced:
    """Keep runs in the lab's store; those that cannot be kept are remarks."""
    folders = [Path(request.results) / name for name in request.runs]
    new, _ = sources.keep(folders, lambda text: hear(Remark(sentence=text)))
    return Produced(sentence=f"{new} of {len(folders)} runs are new in the lab's store")
