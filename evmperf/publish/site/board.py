"""The pages of one board."""

import itertools
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.benchmarks import catalogue, wording
from evmperf.judge import goals
from evmperf.judge import trends as regress
from evmperf.judge.accepted import Accepted
from evmperf.judge.causes import causes
from evmperf.judge.nights import nights
from evmperf.judge.trends import Trend, Trends
from evmperf.measure.runs.history import StoredRun
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
RECENT_DAYS = 30
"""What began within so many days before a board's newest run is news."""


@dataclass(frozen=True)
class SiteJob:
    """What writing a board's pages needs; its runs, oldest first."""

    out: Path
    reports: str
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
    def alarming(self) -> bool:
        """Whether somebody should look at it."""
        return self.state == Outcome.WORSE

    @property
    def size(self) -> float:
        """How large it is, as a share."""
        return abs(self.relative or 0.0)

    @property
    def href(self) -> str:
        """The place of its page."""
        return "/".join(map(slug, (self.board, self.key.benchmark, self.key.case))) + ".html"


@dataclass
class FigureCounts:
    """What became of the figures of a board, or of several."""

    figures: int = 0
    period: str = ""
    """What `news` is of, in words."""
    news: Counter[str] = field(default_factory=Counter)
    """How many figures came to a new level, or are off, within RECENT_DAYS, by `BoardChange.state`."""
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
        return sum(self.words[word] for word in _UNTOLD)

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
    given: int
    """Its runs."""
    runs: int = 0
    """Those that could be read; a board without has no pages."""
    counts: FigureCounts = field(default_factory=FigureCounts)
    changes: list[BoardChange] = field(default_factory=list)
    undecided: list[BoardChange] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


_UNTOLD = (Outcome.UNKNOWN, Outcome.NOT_COMPARABLE)
_REST = {
    Outcome.WORSE: "worse than before that",
    Outcome.UNKNOWN: "undecided for noise",
    Outcome.NOT_COMPARABLE: "not comparable (too few runs alike)",
    Outcome.NOT_JUDGED: "shown only",
}
"""What a headline says of the words that are not its subject."""


def write(job: SiteJob) -> BoardSummary:
    """Write a board's pages; raises OSError when the disk does not take them."""
    name, given = job.board, job.runs
    summary = BoardSummary(name, given[-1].run, len(given))
    history = regress.of_nights(nights(given, summary.problems.append), job.marks)
    if not history.runs:
        return summary
    by_id = {entry.run.id: entry for entry in given}
    entries = [by_id[run.id] for run in history.runs]
    folder = Folder(job.out, job.reports, summary.pages)
    summary.runs = len(history.runs)
    summary.changes = sorted(_changes(name, history), key=lambda one: one.run.started_ns, reverse=True)
    summary.undecided = sorted(_undecided(name, history), key=lambda one: one.size, reverse=True)
    since = history.runs[-1].started_ns - RECENT_DAYS * 86400 * 10**9
    # A figure counts once, with its newest change.
    recent = {one.key: one.state for one in reversed(summary.changes) if one.run.started_ns >= since}
    summary.counts = FigureCounts(
        len(history.trends),
        _period(history.runs),
        Counter(recent.values()),
        Counter(str(case.outcome(trend)) for trend in history.trends.values()),
        _goals(history, summary.problems),
    )
    folder.file(f"{slug(name)}/runs.js", f"evmperf_runs = {_runs(folder, entries)};\n")
    benchmarks = _by_benchmark(history)
    for benchmark, cases in benchmarks.items():
        _write_benchmark(folder, name, benchmark, cases, history)
    folder.page(
        f"{slug(name)}/index.html",
        "board.html.j2",
        summary=summary,
        runs=history.runs,
        causes=causes([one.verdict for one in history.trends.values() if one.verdict], history.runs),
        benchmarks=[_row(*one) for one in benchmarks.items()],
    )
    return summary


def _goals(of_board: Trends, problems: list[str]) -> list[Reached]:
    """What the newest figures say of the board's goals."""
    try:
        goals_of_run = goals.of_run(of_board.runs[-1])
    except EvmperfError as error:
        problems.append(str(error))
        return []
    newest = {key: (trend.points[-1].value, trend.unit) for key, trend in of_board.trends.items()}
    return [one.reached(*newest.get(one.key, (None, ""))) for one in goals_of_run]


def _period(runs: Sequence[Run]) -> str:
    recent_ns = RECENT_DAYS * 86400 * 10**9
    if is_published(runs[-1]):
        return "in the newest release"
    long = runs[-1].started_ns - runs[0].started_ns >= recent_ns
    return f"within {RECENT_DAYS} days" if long else "since the first run"


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
    order = {name: number for number, name in enumerate(benchmarks)}
    places = {
        (name, metric.name): number
        for name, benchmark in benchmarks.items()
        for number, metric in enumerate(benchmark.metrics)
    }

    def place(trend: Trend) -> tuple[object, ...]:
        benchmark, case, metric = trend.key
        return (
            order.get(benchmark, len(order)),
            benchmark,
            look.natural(case),
            places.get((benchmark, metric), len(places)),
            metric,
        )

    grouped: dict[str, dict[str, list[Trend]]] = {}
    for trend in sorted(of_board.trends.values(), key=place):
        grouped.setdefault(trend.key.benchmark, {}).setdefault(trend.key.case, []).append(trend)
    return grouped


def _changes(board: str, of_board: Trends) -> Iterator[BoardChange]:
    """Every change of level, and every newest figure that is off and not one of these."""
    for key, trend in of_board.trends.items():
        for move in trend.moves:
            change = (of_board.runs[move.at], move.before, move.after, move.change, move.outcome)
            yield BoardChange(board, key, trend.unit, *change, move.accepted.why if move.accepted else "")
        verdict, at = trend.verdict, trend.off_since(of_board.runs)
        if verdict and at is not None and verdict.outcome in (Outcome.WORSE, Outcome.BETTER):
            levels = (verdict.baseline or 0.0, verdict.value or 0.0, verdict.change)
            yield BoardChange(board, key, trend.unit, of_board.runs[at], *levels, verdict.outcome)


def _undecided(board: str, of_board: Trends) -> Iterator[BoardChange]:
    """Every newest figure that looks worse by its direction, and cannot be told for noise."""
    for key, trend in of_board.trends.items():
        verdict = trend.verdict
        change = verdict.change or 0.0 if verdict else 0.0
        loss = trend.better is (Direction.LOWER if change > 0 else Direction.HIGHER)
        if verdict and verdict.outcome is Outcome.UNKNOWN and change and loss:
            levels = (verdict.baseline or 0.0, verdict.value or 0.0, change)
            run = of_board.runs[trend.alike[-1].run]
            yield BoardChange(board, key, trend.unit, run, *levels, verdict.outcome)


def _row(benchmark: str, cases: dict[str, list[Trend]]) -> dict[str, str | int]:
    """A benchmark in the list of a board's."""
    trends = [trend for of_case in cases.values() for trend in of_case]
    declared = catalogue.benchmarks().get(benchmark)
    words = Counter(trend.outcome for trend in trends)
    return {
        "name": benchmark,
        "title": wording.title(benchmark),
        "driver": declared.driver if declared else "",
        "cases": len(cases),
        "figures": len(trends),
        "worse": words[Outcome.WORSE],
        "better": words[Outcome.BETTER],
        "untold": sum(case.outcome(trend) in _UNTOLD for trend in trends),
        "changes": sum(len(trend.moves) for trend in trends),
    }


def _write_benchmark(
    folder: Folder, board: str, benchmark: str, cases: dict[str, list[Trend]], of_board: Trends
) -> None:
    title, notes = wording.title(benchmark), Notes()
    scales: dict[str, tuple[str, float]] = {}
    for trend in itertools.chain.from_iterable(cases.values()):
        unit, divisor = readable(trend.unit, trend.alike[-1].value)
        metric = trend.key.metric
        scales[metric] = max(scales.get(metric, (unit, divisor)), (unit, divisor), key=lambda one: one[1])
    rows = []
    for label, trends in cases.items():
        by_metric = {trend.key.metric: trend for trend in trends}
        remarks = [
            f"{case.outcome(trend)}: {case.reason(trend)}"
            for trend in trends
            if case.outcome(trend) not in (Outcome.SAME, Outcome.WORSE, Outcome.BETTER)
        ]
        remarks += [
            f"measured last on {day(of_board.runs[trend.alike[-1].run])}"
            for trend in trends
            if trend.alike[-1].run != len(of_board.runs) - 1
        ]
        letters = "".join(dict.fromkeys(notes.letter(text, label) for text in remarks))
        rows.append(
            (label, letters, [(by_metric.get(name), divisor) for name, (_, divisor) in scales.items()])
        )
    for before, label, after in zip(["", *cases], cases, [*list(cases)[1:], ""], strict=False):
        page = case.SiteCase(board, benchmark, title, label, before, after)
        case.write(folder, page, cases[label], of_board.runs)
    folder.page(
        f"{slug(board)}/{slug(benchmark)}/index.html",
        "benchmark.html.j2",
        board=board,
        benchmark=benchmark,
        title=title,
        heads=[head(benchmark, name, unit) for name, (unit, _) in scales.items()],
        rows=rows,
        notes=notes.all(len(rows)),
        newest=of_board.runs[-1],
        spark=lambda trend: plots.spark([point.value for point in trend.alike[-_SPARKED:]]),
        outcome=case.outcome,
    )
