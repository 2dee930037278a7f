"""What a run is compared with: `release:11.00`, `run:ID`, `guide:FILE`, `last:N`."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from evmperf.judge import accepted, beside, judge, nightly, shift, singles
from evmperf.judge.causes import causes
from evmperf.judge.nights import EarlierNight, nights
from evmperf.judge.published import identity
from evmperf.judge.published import releases as gather
from evmperf.judge.published import source as record
from evmperf.measure.runs import history
from evmperf.measure.runs.history import RunSource, SpoolFolder, StoredRun, WithHistory
from evmperf.measure.runs.spool import VERDICTS, append_records, read_records, read_results, read_run
from evmperf.model import plugins
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Result
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict, explained

_ENOUGH = 30
"""Earlier runs that tell a metric's spread."""
HELP = "release:11.00, run:ID, last:N, or guide:FILE"


@dataclass(frozen=True)
class WantedBaseline:
    """What a person asked for."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


def parse(text: str) -> WantedBaseline:
    """Read `kind:value`; raises UsageError."""
    kind, _, value = text.partition(":")
    if kind not in ("release", "run", "guide", "last") or not value:
        raise UsageError(f"{text!r}: compare with {HELP}")
    if kind == "last" and not (value.isdigit() and int(value) > 0):
        raise UsageError(f"{text!r}: give a number of runs, e.g. last:20; or compare with {HELP}")
    return WantedBaseline(kind, value)


def run_folder(given: str, results: Path) -> Path:
    """The folder of a run, which may be one of the published."""
    return history.run_folder(given, results, gather.BASELINES)


def judged(
    folder: Path,
    against: WantedBaseline,
    source: RunSource,
    level: float | None = None,
    *,
    one_night: bool = True,
) -> Judgement:
    """Judge the run in a folder by what a source has, or a guide; raises UsageError when there is
    nothing of that name. `one_night`: see `nightly.against_nights`.
    """
    (subject,) = _subjects([folder])
    run = subject.run
    if against.kind == "last":
        earlier = _last(run, against, source)
        before: Collection[Key] = ()

        def past() -> Iterator[EarlierNight]:
            nonlocal before
            for night in nights(earlier):
                before = night.figures
                yield night

        verdicts = nightly.against_nights(subject, past(), level or shift.LEVEL, one_night)
        verdicts, tonight = _shared(run, verdicts, source)
        runs = [*(entry.run for entry in earlier), *tonight, run]
        gone = singles.gone(subject, before)
        common_causes = causes(verdicts, runs)
        return Judgement(run.id, run.board, str(against), verdicts, gone, _unread(runs[-2:]), common_causes)
    baseline = _figures(run, against, source)
    sides = [run, *{other.id: other for other, _ in baseline.values()}.values()]
    own = beside.seen(nights(_earlier(run, source)[-_ENOUGH:]))
    needed = own if against.kind == "run" else None
    verdicts = singles.against_figures(subject, baseline, usual() | own, needed, level=level or judge.LEVEL)
    return Judgement(
        run.id, run.board, str(against), verdicts, singles.gone(subject, baseline), _unread(sides)
    )


def _shared(run: Run, verdicts: list[Verdict], source: RunSource) -> tuple[list[Verdict], list[Run]]:
    """The verdicts, alarms that another run of the same night opened with its date; and these runs."""
    told = {
        key: (alarm, night.run)
        for night in nights(_earlier(run, source, same_night=True))
        for key, alarm in night.alarms.items()
        if alarm.is_open and alarm.since == night.run.id
    }
    since: dict[str, Run] = {}
    for place, verdict in enumerate(verdicts):
        mine, (theirs, other) = verdict.alarm, told.get(verdict.key, (None, run))
        if mine and theirs and mine.is_open and mine.since == run.id and mine.size * theirs.size > 0:
            alarm = structs.replace(mine, since=theirs.since, opened=theirs.opened, good=theirs.good)
            verdicts[place] = replace(verdict, alarm=alarm, why=alarm.story())
            since[other.id] = other
    return verdicts, list(since.values())


def _last(run: Run, against: WantedBaseline, source: RunSource) -> list[StoredRun]:
    """What `last:N` names. What is slow shows against older runs only, so that many bring more; who
    names a few wants no others.
    """
    count = int(against.value)
    return _earlier(run, source)[-(max(count, shift.LONGEST) if count >= _ALL_FROM else count) :]


_ALL_FROM = 20
"""`last:N` from which on older runs count, too."""
_BEFORE = 5
"""Runs before a change that stand for how things were, and the first since then."""


def sides(
    folder: Path, against: WantedBaseline, source: RunSource, judgement: Judgement
) -> tuple[Run | None, Sequence[Path], Sequence[Path]]:
    """The last good run before the largest loss, and the folders of runs before and after it whose files are
    here, to ask what else changed; empty where nothing got worse, or against figures that are no runs.
    """
    worse = [v for v in judgement.verdicts if v.outcome is Outcome.WORSE]
    if not (worse or judgement.perhaps_worse) or against.kind not in ("last", "run"):
        return None, (), ()
    if against.kind == "run":
        earlier = [_named(against.value, source)]
        first = 1
    else:
        earlier = _last(read_run(folder), against, source)
        names = [entry.run.id for entry in earlier]
        goods = [cause.good for cause in judgement.causes[:1] if worse]
        goods = goods or [v.alarm.good for v in judgement.perhaps_worse if v.alarm]
        first = min((names.index(good) + 1 for good in goods if good in names), default=0)
    if not first:
        return None, (), ()
    good = earlier[first - 1].run
    if not worse:
        return good, (), ()
    files = [_files(entry, folder) for entry in earlier]
    before, after = files[max(0, first - _BEFORE) : first], files[first:][:_BEFORE]
    return good, [f for f in before if f], [*(f for f in after if f), folder]


def _files(entry: StoredRun, beside: Path) -> Path | None:
    """Where the files of a run are, which may have come from a database."""
    folder_of_run = entry.folder or beside.parent / entry.run.id
    return folder_of_run if (folder_of_run / "run.json").is_file() else None


def between(a: Sequence[Path], b: Sequence[Path], level: float | None = None) -> Judgement:
    """Judge the runs in some folders by those in others; the last of each stands for its side."""
    before, after = _subjects(a), _subjects(b)
    names = [" ".join(subject.run.id for subject in side) for side in (before, after)]
    last, other = after[-1], before[-1]
    verdicts = singles.between(before, after, level or judge.LEVEL)
    gone, unread = singles.gone(last, other.figures), _unread([last.run, other.run])
    return Judgement(names[1], last.run.board, f"runs {names[0]}", verdicts, gone, unread)


def _subjects(folders: Sequence[Path]) -> list[judge.Subject]:
    marks = accepted.read()
    return [judge.Subject(read_run(folder), figures(read_results(folder)), marks) for folder in folders]


def _unread(runs: Iterable[Run]) -> dict[str, int]:
    """How many tables of published guides were not read, by run."""
    counts = {run.id: run.facts.unread_tables or 0 for run in runs}
    return {run: count for run, count in counts.items() if count}


def usual() -> dict[tuple[str, ...], float]:
    """The usual spread of each metric, from the published figures."""
    return beside.usual(figures(entry.results()) for entry in gather.published())


def _earlier(run: Run, source: RunSource, *, same_night: bool = False) -> list[StoredRun]:
    """The runs of the board before this one, oldest first: of other nights, or of the `same_night`.

    Those of the same night, on other boards of the kind or on this one before it was lost, are
    what it is to be judged with, not its past.
    """
    night = run.facts.night
    return [
        entry
        for entry in source.runs(run.board)
        if entry.run.id != run.id
        and entry.run.started_ns <= run.started_ns
        and (entry.run.kind != record.KIND or entry.run.os == run.os)
        and bool(night and entry.run.facts.night == night) is same_night
    ]


def _figures(run: Run, against: WantedBaseline, source: RunSource) -> Mapping[Key, tuple[Run, Figure]]:
    """Figures with their run; of a metric in several runs, the newest."""
    if against.kind == "run":
        mine = [_named(against.value, source)]
    elif against.kind == "guide":
        mine = [plugins.guide_reader("figures", str(against))(Path(against.value), run.board)]
    else:
        by_id = {entry.run.id: entry for entry in _all(source)}
        others = [entry for entry in by_id.values() if entry.run.id != run.id]
        of_release = [e for e in others if gather.same_release(against.value, e.run.release)]
        if not of_release:
            raise gather.no_such_release(others, against.value)
        mine = [e for e in of_release if e.run.os == run.os and identity.same(e.run.board, run.board)]
    return {key: (entry.run, figure) for entry in mine for key, figure in figures(entry.results()).items()}


def _all(source: RunSource) -> Iterator[StoredRun]:
    """The published figures and the runs of a source."""
    yield from record.guides()
    yield from gather.published()
    yield from source.runs()


def _named(given: str, source: RunSource) -> StoredRun:
    """A run by its folder or id: of a folder of runs, of another source, or a published one."""
    first = source.sources[0] if isinstance(source, WithHistory) else source
    if isinstance(first, SpoolFolder):
        try:
            return history.in_folder(run_folder(given, first.results))
        except UsageError:
            if first is source:
                raise
    return history.among(given, {entry.run.id: entry for entry in _all(source)}, source)


def keep(folder: Path, judgement: Judgement) -> int:
    """Append new verdicts beside the run that was judged, from where report and database have them; returns
    their number. A later record about the same figure replaces the earlier one. Raises LabError.
    """
    drivers: dict[str, str] = {}
    kept: dict[Key, VerdictRecord] = {}
    for entry in read_records(folder):
        if isinstance(entry, VerdictRecord):
            kept[entry.key] = entry
        elif isinstance(entry, Result):
            drivers[entry.benchmark] = entry.driver
    new = []
    goals = {goal.key: goal for goal in judgement.goals}
    for verdict in judgement.verdicts:
        row = _record(verdict, drivers.get(verdict.key.benchmark, ""), judgement)
        if goal := goals.get(verdict.key):
            row = structs.replace(row, goal=goal.goal, reached=str(goal.word), owner=goal.owner)
        if row != kept.get(verdict.key):
            new.append(row)
    if new:
        append_records(folder, new, VERDICTS)
    return len(new)


def _record(verdict: Verdict, driver: str, judgement: Judgement) -> VerdictRecord:
    """A verdict as it is kept: a number that is not finite is none."""
    numbers = (verdict.change, verdict.baseline, verdict.tolerance)
    change, was, tolerance = (one if one is not None and math.isfinite(one) else None for one in numbers)
    cause = next((one for one in judgement.causes if verdict.key in one.members), None)
    return VerdictRecord(
        **verdict.key._asdict(),
        driver=driver,
        verdict=str(verdict.outcome),
        reason=explained(verdict),
        baseline=judgement.against,
        change=change,
        was=was,
        tolerance=tolerance,
        why=verdict.why,
        code=str(verdict.reason),
        alarm=verdict.alarm if verdict.alarm and verdict.alarm.is_finite else None,
        cause="; ".join(cause.suspects) if cause else "",
    )
