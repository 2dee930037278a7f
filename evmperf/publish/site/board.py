"""The pages of one board."""

import itertools
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from evmperf.benchmarks import catalogue
from evmperf.judge import goals, trends
from evmperf.judge.accepted import Accepted
from evmperf.judge.causes import causes
from evmperf.judge.nights import nights
from evmperf.judge.trends import Trend, Trends
from evmperf.measure.runs.history import StoredRun
from evmperf.measure.runs.spool import leave_out
from evmperf.model import outlets
from evmperf.model.errors import EvmperfError
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.units import counted, readable
from evmperf.model.verdict import GoalWord, Outcome, Reached
from evmperf.publish.pages import look, plots
from evmperf.publish.report.shape import Notes, head
from evmperf.publish.site import case
from evmperf.publish.site.pages import Folder, day, is_published, slug

_SPARKED = 60
"""Nights of the small histories."""
_RECENT_DAYS = 30
"""What began within so many days before a board's newest run is news."""
_RECENT_NS = _RECENT_DAYS * 86_400 * 10**9


@dataclass(frozen=True)
class SiteJob:
    """What writing a board's pages needs; its runs, oldest first."""

    folder: Folder
    board: str
    runs: Sequence[StoredRun]
    marks: Sequence[Accepted]


@dataclass(frozen=True)
class BoardChange:
    """A change of level, a newest figure that is off, or one that may be, for the lists of pages."""

    board: str
    key: Key
    unit: str
    run: Run
    before: float
    after: float
    relative: float | None
    outcome: Outcome
    why: str = ""
    """Why it was accepted."""

    @property
    def state(self) -> str:
        """In a word; `changed` where there is no better or worse."""
        if self.why:
            return "accepted"
        return "changed" if self.outcome is Outcome.NOT_JUDGED else str(self.outcome)

    @property
    def size(self) -> float:
        """How large it is, as a share."""
        return abs(self.relative or 0.0)


@dataclass
class FigureCounts:
    """What became of the figures of a board, or of several."""

    figures: int = 0
    period: str = ""
    """What `news` is of, in words."""
    news: Counter[str] = field(default_factory=Counter)
    """How many figures came to a new level, or are off, of late, by `BoardChange.state`."""
    words: Counter[str] = field(default_factory=Counter)
    """How many figures have which verdict now."""
    goals: Sequence[Reached] = ()

    def __add__(self, other: "FigureCounts") -> "FigureCounts":
        period = max(self.period, other.period)  # "within" is after "since"
        counts = (self.news + other.news, self.words + other.words, [*self.goals, *other.goals])
        return FigureCounts(self.figures + other.figures, period, *counts)

    @property
    def untold(self) -> int:
        """Of how many figures the newest is neither the same nor shown to have changed."""
        return sum(self.words[word] for word in (Outcome.UNKNOWN, Outcome.NOT_COMPARABLE))

    @property
    def decided(self) -> int:
        """Of how many figures the newest was told."""
        return sum(self.words[word] for word in (Outcome.SAME, Outcome.BETTER, Outcome.WORSE))

    @property
    def missed(self) -> list[Reached]:
        """The goals that are missed."""
        return [goal for goal in self.goals if goal.word is GoalWord.MISSED]

    @property
    def state(self) -> str:
        """`good` only where every figure with a direction was told."""
        if self.news[Outcome.WORSE] or self.words[Outcome.WORSE] or self.missed:
            return "bad"
        return "good" if self.decided and not self.untold else "unsure"

    @property
    def headline(self) -> str:
        """What became of the figures, in one sentence that says what is not known, too."""
        worse, better = self.news[Outcome.WORSE], self.news[Outcome.BETTER]
        if worse:
            text = f"{worse} of {self.figures} figures became worse {self.period}"
        elif self.decided:
            text = f"Decided figures: {self.decided}, none worse {self.period}"
        else:
            text = f"None of {self.figures} figures is decided yet"
        text += f", {better} became better" if better else ""
        owners = ", ".join(dict.fromkeys(goal.owner for goal in self.missed))
        first = [f"{counted(len(self.missed), 'goal')} missed (owner {owners})"] if self.missed else []
        rest = {word: what for word, what in _REST.items() if word is not Outcome.WORSE or not worse}
        counts = (f"{self.words[word]} {what}" for word, what in rest.items() if self.words[word])
        return "; ".join([*first, text, *counts]) + "."


@dataclass
class BoardSummary:
    """What the fleet's page says of a board."""

    board: str
    run: Run
    runs: int
    """Those that could be read; a board without has no pages."""
    counts: FigureCounts = field(default_factory=FigureCounts)
    changes: Sequence[BoardChange] = ()
    undecided: Sequence[BoardChange] = ()
    pages: Sequence[int] = ()


_REST = {
    Outcome.WORSE: "worse than before that",
    Outcome.UNKNOWN: "undecided for noise",
    Outcome.NOT_COMPARABLE: "not comparable (too few runs alike)",
    Outcome.NOT_JUDGED: "shown only",
}
"""What a headline says of the words that are not its subject."""


def write(job: SiteJob) -> BoardSummary:
    """Write a board's pages; raises OSError when the disk does not take them."""
    history = trends.of_nights(nights(job.runs), job.marks)
    runs = history.runs
    summary = BoardSummary(job.board, job.runs[-1].run, len(runs), pages=job.folder.sizes)
    if not runs:
        return summary
    changes = sorted(_changes(job.board, history), key=lambda one: one.run.started_ns, reverse=True)
    summary.undecided = [one for one in changes if one.outcome is Outcome.UNKNOWN]
    summary.changes = [one for one in changes if one.outcome is not Outcome.UNKNOWN]
    since = runs[-1].started_ns - _RECENT_NS
    # A figure counts once, with its newest change.
    recent = {one.key: one.state for one in reversed(summary.changes) if one.run.started_ns >= since}
    summary.counts = FigureCounts(
        len(history.trends),
        _period(runs),
        Counter(recent.values()),
        _words(history.trends.values()),
        _goals(history),
    )
    folder, here = job.folder, slug(job.board)
    by_id = {entry.run.id: entry for entry in job.runs}
    folder.file(f"{here}/runs.js", f"evmperf_runs = {_runs(folder, [by_id[run.id] for run in runs])};\n")
    benchmarks = _by_benchmark(history)
    for benchmark, cases in benchmarks.items():
        _write_benchmark(folder, job.board, benchmark, cases, runs)
    folder.page(
        f"{here}/index.html",
        "board.html.j2",
        summary=summary,
        runs=runs,
        causes=causes([one.verdict for one in history.trends.values() if one.verdict], runs),
        benchmarks=[_row(*one) for one in benchmarks.items()],
    )
    return summary


def _goals(of_board: Trends) -> list[Reached]:
    """What the newest figures say of the board's goals; a wrong file of goals is named."""
    newest = {key: (trend.points[-1].value, trend.unit) for key, trend in of_board.trends.items()}
    try:
        return [one.reached(*newest.get(one.key, (None, ""))) for one in goals.of_run(of_board.runs[-1])]
    except EvmperfError as error:
        leave_out(str(error))
        return []


def _period(runs: Sequence[Run]) -> str:
    if is_published(runs[-1]):
        return "in the newest release"
    long = runs[-1].started_ns - runs[0].started_ns >= _RECENT_NS
    return f"within {_RECENT_DAYS} days" if long else "since the first run"


def _runs(folder: Folder, entries: Sequence[StoredRun]) -> str:
    """Of each run time (s), id as a shell word, release, kernel, report and CI job, for site.js."""
    rows = []
    for entry in entries:
        run, job = entry.run, outlets.address(entry.run.addresses.get("job", ""))
        known = (run.started_ns // 10**9, shlex.quote(run.id), run.release, run.facts.kernel)
        rows.append((*known, folder.report(entry), job))
    return outlets.script(json.dumps(rows, separators=(",", ":")))


def _by_benchmark(of_board: Trends) -> dict[str, dict[str, list[Trend]]]:
    """Trends by benchmark and case: both in the catalogue's order, cases in natural order."""
    benchmarks = catalogue.benchmarks()
    names = [*benchmarks]

    def place(trend: Trend) -> tuple[object, ...]:
        benchmark, case, metric = trend.key
        known = benchmark in benchmarks
        metrics = [one.name for one in benchmarks[benchmark].metrics] if known else []
        of_benchmark = names.index(benchmark) if known else len(names)
        of_metric = metrics.index(metric) if metric in metrics else len(metrics)
        return of_benchmark, benchmark, look.natural(case), of_metric, metric

    grouped: dict[str, dict[str, list[Trend]]] = {}
    for trend in sorted(of_board.trends.values(), key=place):
        grouped.setdefault(trend.key.benchmark, {}).setdefault(trend.key.case, []).append(trend)
    return grouped


def _changes(board: str, of_board: Trends) -> Iterator[BoardChange]:
    """Every change of level, and every newest figure that is off and not one of these, or that looks worse
    by its direction and cannot be told for noise.
    """
    for key, trend in of_board.trends.items():
        change = partial(BoardChange, board, key, trend.unit)
        for move in trend.moves:
            why = move.accepted.why if move.accepted else ""
            yield change(of_board.runs[move.at], move.before, move.after, move.change, move.outcome, why)
        verdict, at = trend.verdict, trend.off_since(of_board.runs)
        if verdict is None:
            continue
        levels = (verdict.baseline or 0.0, verdict.value or 0.0, verdict.change, verdict.outcome)
        if at is not None and verdict.outcome in (Outcome.WORSE, Outcome.BETTER):
            yield change(of_board.runs[at], *levels)
        loss = Direction.LOWER if (verdict.change or 0.0) > 0 else Direction.HIGHER
        if verdict.outcome is Outcome.UNKNOWN and verdict.change and trend.better is loss:
            yield change(of_board.runs[trend.alike[-1].run], *levels)


def _row(benchmark: str, cases: dict[str, list[Trend]]) -> dict[str, object]:
    """A benchmark in the list of a board's."""
    found = [trend for of_case in cases.values() for trend in of_case]
    declared = catalogue.benchmarks().get(benchmark)
    return {
        "name": benchmark,
        "driver": declared.driver if declared else "",
        "cases": len(cases),
        "counts": FigureCounts(len(found), words=_words(found)),
        "changes": sum(len(trend.moves) for trend in found),
    }


def _words(found: Iterable[Trend]) -> Counter[str]:
    return Counter(str(case.told(trend)[0]) for trend in found)


def _write_benchmark(
    folder: Folder, board: str, benchmark: str, cases: dict[str, list[Trend]], runs: Sequence[Run]
) -> None:
    notes = Notes()
    scales: dict[str, tuple[str, float]] = {}
    for trend in itertools.chain.from_iterable(cases.values()):
        scale, metric = readable(trend.unit, trend.alike[-1].value), trend.key.metric
        scales[metric] = max(scales.get(metric, scale), scale, key=lambda one: one[1])
    rows = []
    for label, of_case in cases.items():
        by_metric = {trend.key.metric: trend for trend in of_case}
        remarks = [
            f"{word}: {why}"
            for word, why in map(case.told, of_case)
            if word not in (Outcome.SAME, Outcome.WORSE, Outcome.BETTER)
        ]
        newest = (trend.alike[-1].run for trend in of_case)
        remarks += [f"measured last on {day(runs[at])}" for at in newest if at != len(runs) - 1]
        letters = "".join(dict.fromkeys(notes.letter(text, label) for text in remarks))
        rows.append(
            (label, letters, [(by_metric.get(name), divisor) for name, (_, divisor) in scales.items()])
        )
    for before, of_case, after in zip(["", *cases], cases.values(), [*cases, ""][1:], strict=False):
        case.write(folder, board, of_case, runs, beside=(before, after))
    folder.page(
        f"{slug(board)}/{slug(benchmark)}/index.html",
        "benchmark.html.j2",
        board=board,
        benchmark=benchmark,
        heads=[head(benchmark, name, unit) for name, (unit, _) in scales.items()],
        rows=rows,
        notes=notes.all(len(rows)),
        newest=runs[-1],
        spark=lambda trend: plots.spark([point.value for point in trend.alike[-_SPARKED:]]),
        told=case.told,
    )
