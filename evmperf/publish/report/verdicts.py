"""Verdicts for people and for machines."""

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from evmperf.benchmarks import wording
from evmperf.measure.runs.differences import Difference
from evmperf.model.outlets import markdown, plain
from evmperf.model.verdict import Judgement, Outcome, Reason, Verdict, change_text, explained, number
from evmperf.publish.report import differences as differing
from evmperf.publish.report.columns import Column, markdown_table, shortened, sparkline, table

_ALARMS = (Outcome.WORSE, Outcome.BETTER)


_CAUSES = 3
"""Causes that are told on a terminal, and reasons without an answer."""
_ROWS = 6
"""Members of the first cause that have rows of their own; of the second, of what is suspected and of what has
ended, one has.
"""


def shown(judgement: Judgement, everything: bool = False) -> list[Verdict]:
    """The verdicts that people look at: the first of each cause, what is suspected or has ended; or all."""
    members = [cause.members for cause in judgement.causes[:2]]
    first = {key for place, keys in enumerate(members) for key in keys[: 1 if place else _ROWS]}
    caused = {key for cause in judgement.causes for key in cause.members}
    suspects = {v.key for v in judgement.suspects[:1]}
    ended = {v.key for v in judgement.verdicts if v.alarm and not v.alarm.is_open and not v.suspect}
    keys = first | suspects | set(sorted(ended)[:1])
    moved = [v for v in judgement.verdicts if v.outcome in _ALARMS and v.key not in caused]
    return [v for v in judgement.verdicts if everything or v.key in keys or v in moved]


_COLUMNS = (
    Column("verdict"),
    *(Column(heading, wrap=True) for heading in ("benchmark", "case", "metric")),
    Column("value", right=True, drop=1),
    Column("baseline", right=True, drop=4),
    Column("change", right=True),
    Column("tolerance", right=True, drop=2),
    Column("history", drop=3),
    Column("why", wrap=True),
)
_MARKDOWN = (
    *(Column(heading) for heading in ("verdict", "metric")),
    *(Column(heading, right=True) for heading in ("value", "baseline", "change")),
    *(Column(heading) for heading in ("since", "why")),
)


def text(judgement: Judgement, everything: bool = False, width: int | None = None) -> str:
    """A table for the terminal, the worst first, and a sentence; `width` in characters (None: its own)."""
    since = {key: cause.since for cause in judgement.causes for key in cause.members}
    rows = [_cells(verdict, since.get(verdict.key, "")) for verdict in shown(judgement, everything)]
    # A column in which nothing stands would narrow that of the reasons.
    columns = [n for n in range(len(_COLUMNS)) if any(row[n] != "-" for row in rows)]
    kept = [_COLUMNS[n] for n in columns]
    rows_text = table(kept, [[row[n] for n in columns] for row in rows], width) if rows else ""
    if more := sum(map(judgement.count, _ALARMS)) - sum(row[0] in _ALARMS for row in rows):
        rows_text += f"{more} more: --all lists them\n"
    return rows_text + "".join(f"{line}\n" for line in [*_summary_lines(judgement), judgement.sentence()])


def _summary_lines(judgement: Judgement) -> Iterator[str]:
    """Goals, causes and the most frequent reasons without a verdict, of which noise counts as one."""
    for goal in judgement.goals:
        text = f"{number(goal.value)} {goal.unit}, {goal.goal} (owner {goal.owner})"
        yield f"goal {goal.word}: {wording.figure(goal.key)} {text}"
    yield from (f"cause {n}: {cause.sentence()}" for n, cause in enumerate(judgement.causes[:_CAUSES], 1))
    if more := len(judgement.causes) - _CAUSES:
        yield from [f"{more} more cause{'s' * (more > 1)}: --all shows their figures"] * (more > 0)
    whys = Counter(
        SAID.get(v.reason) or f"{v.outcome}: {v.why}"
        for v in judgement.verdicts
        if v.outcome in (Outcome.UNKNOWN, Outcome.NOT_COMPARABLE) and v.reason not in _TOLD_ELSEWHERE
    )
    yield from (f"{count} without an answer: {why}" for why, count in whys.most_common(_CAUSES))
    yield from judgement.gaps()


_TOLD_ELSEWHERE = (Reason.NO_COUNTERPART, Reason.ALARM)
"""Reasons of figures that only one side has, and of alarms that ended tonight."""
SAID: dict[str, str] = {
    Reason.NOISE: "noise: a change of up to the tolerance would not show",
    Reason.ODD: "far off, as such figures were before, or as the whole board is; more runs decide",
    Reason.RECOVERING: "an open alarm that tonight does not bear out; later nights decide",
}
"""Reasons whose sentences have figures of their own."""


def _cells(verdict: Verdict, since: str) -> list[str]:
    """The row of a verdict; `since` is the run that its cause is said to be since."""
    latest = [] if verdict.value is None else [verdict.value]
    spark = sparkline([*verdict.history, *latest])
    why, alarm = verdict.why, verdict.alarm
    if verdict.suspect:
        why = "suspected"
    elif alarm and verdict.reason is Reason.RECOVERING:
        why = f"in doubt: {alarm.brief(since)}"
    elif alarm and alarm.is_open and why == alarm.story():
        why = alarm.brief(since)
    key = (verdict.key.benchmark, shortened(verdict.key.case), verdict.key.metric)
    tolerance = "-"
    if verdict.tolerance is not None and verdict.baseline:
        tolerance = f"±{abs(verdict.tolerance / verdict.baseline) * 100:.1f} %"
    return [str(verdict.outcome), *key, *_figures(verdict), tolerance, spark, why]


def as_json(judgement: Judgement, changed: Sequence[Difference] = ()) -> str:
    """Everything, as one object."""
    data = {
        "run": judgement.run,
        "board": judgement.board,
        "against": judgement.against,
        "exit_status": judgement.exit_status,
        "gone": dict(judgement.gone),
        "new": judgement.new,
        "unread_tables": dict(judgement.unread),
        "checked_again": judgement.again,
        "goals": [asdict(goal) for goal in judgement.goals],
        "causes": [asdict(cause) for cause in judgement.causes],
        "counts": {outcome: judgement.count(outcome) for outcome in Outcome},
        "changed": [vars(entry) for entry in changed],
        "verdicts": [
            {**v.key._asdict(), "verdict": v.outcome, **{name: getattr(v, name) for name in _OBJECT}}
            for v in judgement.verdicts
        ],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


_OBJECT = (*("unit", "better", "value", "baseline", "change"), *("tolerance", "p", "since", "why", "suspect"))
"""What an object of the JSON has of a verdict beside its key and word."""


def as_junit(judgement: Judgement) -> str:
    """JUnit: a test a metric; worse ones fail, those without a verdict are skipped."""
    count, worse = len(judgement.verdicts), judgement.count(Outcome.WORSE)
    suite = suite_of(f"evmperf check {judgement.board}", count, worse, count - judgement.compared)
    skipped = (Outcome.NOT_COMPARABLE, Outcome.NOT_JUDGED, Outcome.UNKNOWN)
    for verdict in judgement.verdicts:
        case = case_of(suite, verdict.key.benchmark, f"{verdict.key.case} {verdict.key.metric}")
        message = plain(f"{verdict.outcome}: {explained(verdict)}")
        if verdict.outcome is Outcome.WORSE or verdict.outcome in skipped:
            ET.SubElement(case, "skipped" if verdict.outcome in skipped else "failure", message=message)
        else:
            ET.SubElement(case, "system-out").text = message
    return xml(suite)


def suite_of(name: str, tests: int, failures: int, skipped: int = 0) -> ET.Element:
    """A suite of JUnit with its counts."""
    counts = {"tests": tests, "failures": failures, "errors": 0, "skipped": skipped}
    return ET.Element("testsuite", {"name": plain(name), **{word: str(n) for word, n in counts.items()}})


def case_of(suite: ET.Element, group: str, name: str) -> ET.Element:
    """A test of a suite of JUnit."""
    return ET.SubElement(suite, "testcase", classname=plain(group), name=plain(name))


def xml(root: ET.Element) -> str:
    """The text of a file."""
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def as_markdown(judgement: Judgement, changed: Sequence[Difference] = ()) -> str:
    """For a merge request: changes in a table, the rest in a sentence, other differences folded."""
    head = f"### {markdown(judgement.board)}: {judgement.headline}"
    rows = [(str(v.outcome), wording.figure(v.key), *_figures(v), v.since, v.why) for v in shown(judgement)]
    table = markdown_table(_MARKDOWN, rows, Outcome.WORSE)
    sentences = [f"* {markdown(one)}" for one in _summary_lines(judgement)]
    folded = differing.folded(changed, "What else changed") if changed else []
    return "\n".join([head, "", markdown(judgement.sentence()), "", *table, *sentences, *folded])


def _figures(verdict: Verdict) -> tuple[str, str, str]:
    value = f"{number(verdict.value)} {verdict.unit}"
    return value, number(verdict.baseline), change_text(verdict.change)


def as_openmetrics(judgement: Judgement) -> str:
    """OpenMetrics text (GitLab's metrics reports): values, changes, and counts of verdicts."""
    lines = []
    for name, field in (("evmperf_value", "value"), ("evmperf_change_ratio", "change")):
        lines.append(f"# TYPE {name} gauge")
        for verdict in judgement.verdicts:
            tags = labels(board=judgement.board, **verdict.key._asdict(), unit=verdict.unit)
            value = getattr(verdict, field)
            lines += [] if value is None else [f"{name}{tags} {value:g}"]
    lines.append("# TYPE evmperf_verdicts gauge")
    for outcome in Outcome:
        tags = labels(board=judgement.board, verdict=outcome)
        lines.append(f"evmperf_verdicts{tags} {judgement.count(outcome)}")
    return "\n".join([*lines, "# EOF", ""])


_LABEL = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(**labels: str) -> str:
    """Labels of a metric, escaped."""
    escaped = (f'{name}="{plain(value).translate(_LABEL)}"' for name, value in labels.items())
    return "{" + ",".join(escaped) + "}"
