"""Putting a run's report together, from what is on the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from evmperf.benchmarks import control, wording
from evmperf.explain.answers import Answer
from evmperf.judge.judge import is_open_loss
from evmperf.judge.published import source
from evmperf.measure.runs import spool
from evmperf.measure.runs.differences import flattened
from evmperf.measure.runs.history import GUIDE
from evmperf.model.errors import LabError
from evmperf.model.figures import Baseline, Key
from evmperf.model.records import BootRecord, VerdictRecord
from evmperf.model.results import Failure, Result, Status
from evmperf.model.run import Run
from evmperf.model.stats import percent
from evmperf.model.units import counted
from evmperf.model.verdict import GoalWord, Outcome, Reason
from evmperf.publish.pages import look
from evmperf.publish.report import plots, verdicts
from evmperf.publish.report.excerpt import excerpts
from evmperf.publish.report.shape import WideTable, wide_tables
from evmperf.publish.report.summary import Headline, headlines

NAME = "report.html"
CHANGED = "changed.txt"
"""In a run's folder: what else changed, where `evmperf check` found something worse."""

_MOST_CASES = 300
"""Cases of one benchmark on the page; the longest published table has 70."""
_MOST_ROWS = 4000
_MOST_FAILED = 40
_MOST_ANSWERS = 40
"""Figures whose causes are on the page, the worst first."""
_TEXT = 4000
"""Characters of a message or excerpt on the page; the raw file has all of it."""


@dataclass
class _Benchmark:
    results: list[Result] = field(default_factory=list)
    table: WideTable | None = None
    left_out: int = 0
    plots: list[plots.Plot] = field(default_factory=list)


@dataclass
class _Trouble:
    """A case or boot that did not go well, with what the console showed."""

    where: str
    status: str
    failures: Sequence[Failure]
    excerpt: str = ""


@dataclass
class _Page:
    run: Run
    drivers: dict[str, dict[str, _Benchmark]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    troubles: list[_Trouble] = field(default_factory=list)
    failed: list[tuple[_Trouble, Result]] = field(default_factory=list)
    more_troubles: int = 0
    boots: int = 0
    failed_boots: int = 0
    rows: int = 0
    published: Baseline | None = None
    """The published figures of the board, of the nearest release."""
    headlines: list[Headline] = field(default_factory=list)
    verdicts: dict[Key, VerdictRecord] = field(default_factory=dict)
    """Records of verdicts, the last of each figure."""

    @property
    def state(self) -> str:
        """`good` where all there is was measured, the run came to its end, and nothing is worse;
        `unsure` where that is so but for verdicts that could not be told, "" where nobody compared.
        """
        whole = set(self.statuses) <= {Status.MEASURED}
        if not whole or self.run.exit_status or not self.run.ended_ns or self.of(Outcome.WORSE):
            return "bad"
        if any(record.reached == GoalWord.MISSED for record in self.goals):
            return "bad"
        if not self.verdicts:
            return ""
        return "unsure" if self._untold or not self._compared else "good"

    @property
    def headline(self) -> str:
        """What comparing came to, in sentences that need nothing beside them."""
        if not self.verdicts:
            return "Not compared with earlier runs."
        worse, untold, compared = self.of(Outcome.WORSE), self._untold, self._compared
        against = " and ".join(dict.fromkeys(_against(one.baseline) for one in self.verdicts.values()))
        if worse:
            few = "; ".join(
                f"{wording.figure(one.key)} {percent(one.change) if one.change is not None else ''}"
                for one in worse[:_NAMED]
            )
            more = f" and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
            are = "is" if len(worse) == 1 else "are"
            text = f"{counted(len(worse), 'figure')} {are} worse than {against}: {few}{more}."
        elif compared:
            text = f"Decided figures: {compared}, none worse than {against}."
        else:
            text = f"No figure could be decided against {against}."
        if missed := [one for one in self.goals if one.reached == GoalWord.MISSED]:
            names = "; ".join(f"{wording.figure(one.key)} (owner {one.owner})" for one in missed)
            text = f"Goal{'s' * (len(missed) != 1)} missed: {names}. {text}"
        if untold:
            whys = Counter(verdicts.SAID.get(one.code) or one.why or one.reason for one in untold)
            (why, _), *_ = whys.most_common(1)
            text += f" {len(untold)} of {len(self.verdicts)} figures are undecided ({why})."
        return text

    @property
    def goals(self) -> list[VerdictRecord]:
        return [record for record in self.verdicts.values() if record.goal]

    def trouble(self, trouble: _Trouble, result: Result | None = None) -> None:
        if len(self.troubles) >= _MOST_FAILED:
            self.more_troubles += 1
            return
        self.troubles.append(trouble)
        if result:
            self.failed.append((trouble, result))

    def of(self, *outcomes: Outcome) -> list[VerdictRecord]:
        return [record for record in self.verdicts.values() if record.verdict in outcomes]

    @property
    def _untold(self) -> list[VerdictRecord]:
        """The figures that could have had an answer, and have none."""
        open_ones = self.of(Outcome.UNKNOWN, Outcome.NOT_COMPARABLE)
        return [record for record in open_ones if record.code != Reason.NO_COUNTERPART]

    @property
    def _compared(self) -> int:
        return len(self.of(Outcome.WORSE, Outcome.BETTER, Outcome.SAME))


_NAMED = 3
"""Worse figures that the sentence names."""


def _against(given: str) -> str:
    """What a run was compared with, in words."""
    kind, _, name = given.partition(":")
    sentences = {"last": f"its earlier runs (at most {name})", "guide": f"the guide {name}"}
    return sentences.get(kind, f"{kind} {name}").strip()


def write(folder: Path, answers: Sequence[Answer] = (), beside: Path | None = None) -> Path:
    """Write the report of the run in `folder`, with what `evmperf why` answers of it and the boots of the run
    `beside`, and return its path. Raises UsageError for a folder without a run, LabError when the file cannot
    be written.
    """
    target = folder / NAME
    text = render(folder, answers, beside)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{target}: cannot be written: {error.strerror}") from error
    return target


def render(folder: Path, answers: Sequence[Answer] = (), beside: Path | None = None) -> str:
    """The page's HTML."""
    page = _gather(folder, beside)
    run = page.run
    began = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    length = timedelta(seconds=round((run.ended_ns - run.started_ns) / 1e9))
    return look.render(
        "publish/report/report.html.j2",
        look=look.inline(plots=any(b.plots for tables in page.drivers.values() for b in tables.values())),
        page=page,
        run=run,
        judged={str(word): records for word in Outcome if (records := page.of(word))},
        alarms=_open_alarms(page.verdicts.values()),
        changed=changed.read_text("utf-8") if (changed := folder / CHANGED).is_file() else "",
        answers=sorted(answers, key=lambda answer: -answer.times)[:_MOST_ANSWERS],
        unanswered=max(0, len(answers) - _MOST_ANSWERS),
        key=Key,
        facts=list(_facts(page.run)),
        files=[name for name in _FILES if (folder / name).exists()],
        against=_against,
        href=quote,
        when=f"{began:%Y-%m-%d %H:%M} UTC" if run.started_ns else "-",
        duration=f"{length} long" if run.ended_ns else "not ended",
    )


_FILES = ("console.log", "results.jsonl", "run.json", "junit.xml")


def _gather(folder: Path, beside: Path | None) -> _Page:
    """Go through the records once, keeping no more than the page can show."""
    page = _Page(spool.read_run(folder))
    if page.run.kind != GUIDE:
        page.published = source.baseline(page.run)
    for record in spool.read_records(folder):
        if isinstance(record, Result):
            _take(page, record)
        elif isinstance(record, VerdictRecord):
            page.verdicts[record.key] = record
        elif isinstance(record, BootRecord):
            page.boots += 1
            if failure := record.failure:
                page.failed_boots += 1
                where = f"boot {page.boots} ({record.goal}), got to {failure.phase or 'nothing'}"
                failures = [Failure(failure.kind, failure.message)]
                page.trouble(_Trouble(where, "failed", failures, record.post_mortem[-_TEXT:]))
    before = {key: one.was for key, one in page.verdicts.items() if one.was is not None}
    others = [*spool.results_in(beside)] if beside else []
    for benchmark in (b for benchmarks in page.drivers.values() for b in benchmarks.values()):
        benchmark.results.sort(key=lambda result: look.natural(result.case))
        (benchmark.table,) = wide_tables(benchmark.results, page.published, page.verdicts)
        other = beside.name if beside else ""
        drawn = plots.of_benchmark(
            benchmark.table.title, benchmark.results, folder, before, beside=others, other=other
        )
        benchmark.plots = list(drawn)
    every = [result for b in page.drivers.values() for one in b.values() for result in one.results]
    page.headlines = headlines(every, page.published, page.verdicts)
    texts = excerpts(folder / "console.log", [result for _, result in page.failed])
    for (trouble, _), text in zip(page.failed, texts, strict=True):
        trouble.excerpt = text[-_TEXT:]
    return page


def _take(page: _Page, result: Result) -> None:
    if result.benchmark != control.NAME:
        page.statuses[result.status] = page.statuses.get(result.status, 0) + 1
    if result.failures or result.status is not Status.MEASURED:
        where = f"{wording.title(result.benchmark)}, {wording.case(result.benchmark, result.case)}"
        page.trouble(_Trouble(where, str(result.status), result.failures[:10]), result)
    benchmark = page.drivers.setdefault(result.driver, {}).setdefault(result.benchmark, _Benchmark())
    if len(benchmark.results) >= _MOST_CASES or page.rows >= _MOST_ROWS:
        benchmark.left_out += 1
        return
    benchmark.results.append(result)
    page.rows += 1


def _open_alarms(records: Iterable[VerdictRecord]) -> list[tuple[str, list[VerdictRecord]]]:
    """The losses that are open, those of one run together, as they have probably one cause: how many, how
    long, and who answers for them; the most first.
    """
    by_run: dict[str, list[VerdictRecord]] = {}
    for record in records:
        if record.alarm and is_open_loss(record):
            by_run.setdefault(record.alarm.since, []).append(record)
    alarms = []
    for since, found in sorted(by_run.items(), key=lambda one: -len(one[1])):
        nights = max(record.alarm.nights for record in found if record.alarm)
        owners = ", ".join(sorted({record.owner for record in found if record.owner}))
        figures = f"{counted(len(found), 'figure')}, open for {counted(nights, 'night')}"
        alarms.append((f"since {since}: {figures}{owners and f' (owner {owners})'}", found))
    return alarms


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Everything known, one line a fact."""
    yield from (("board", run.board), ("release", run.release), ("operating system", run.os))
    yield from (("lab", run.lab), ("place", run.place), ("profile", run.profile))
    yield "kind of run", run.kind
    for name, fact in sorted(run.facts.to_dict().items()):
        yield from flattened(name.replace("_", " "), fact) if fact is not False else ()
