"""An A/B for people and for machines: terminal, HTML, JSON, Markdown for a merge request."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from evmperf.benchmarks import wording
from evmperf.measure.runs.differences import Difference
from evmperf.model.change import Change, Comparison
from evmperf.model.outlets import markdown
from evmperf.model.stats import percent, rounded
from evmperf.model.units import counted
from evmperf.model.verdict import Outcome
from evmperf.publish.pages import look
from evmperf.publish.pages import plots as drawing
from evmperf.publish.report import differences as differing
from evmperf.publish.report.columns import Column, grid, markdown_table, shortened
from evmperf.publish.report.columns import table as text_table

_DIGITS = 4
_CHANGED = (Outcome.WORSE, Outcome.BETTER)
_NAMED = 3
"""Changes that the sentence on top names."""
_ENDLESS = ("change", "low", "high", "evidence")
"""What may be infinite."""


def write(folder: Path, comparison: Comparison, differences: Sequence[Difference]) -> None:
    """Write `ab.html`, `ab.json` and `ab.md` into the folder of an A/B."""
    for name, make in (("html", as_html), ("json", as_json), ("md", as_markdown)):
        (folder / f"ab.{name}").write_text(make(comparison, differences), "utf-8")


def table(comparison: Comparison) -> Any:
    """The requested and changed metrics, the worst first, as a table of rich."""
    return grid(_COLUMNS, [*_rows(comparison)])


_COLUMNS = (
    *(Column(heading) for heading in ("decision", "benchmark", "case", "metric")),
    *(Column(heading, right=True) for heading in ("A", "B", "change", "95 % interval", "blocks")),
)


def _rows(comparison: Comparison, everything: bool = False) -> Iterator[tuple[str, ...]]:
    for c in shown(comparison, everything):
        yield str(c.decision), c.key.benchmark, shortened(c.key.case), c.key.metric, *_cells(c)


def _cells(change: Change) -> tuple[str, ...]:
    a, b = columns(change)
    changed = (amount(change, change.change), interval(change))
    return (f"{a} {change.quantity.unit}", b, *changed, str(len(change.a)))


def shown(comparison: Comparison, everything: bool = False) -> list[Change]:
    """The changes that people look at."""
    waiting = set(comparison.waiting)
    return [c for c in comparison.changes if everything or c.key in waiting or c.decision in _CHANGED]


def text(
    comparison: Comparison,
    differences: Sequence[Difference] = (),
    *,
    everything: bool = False,
    width: int | None = None,
) -> str:
    """All of it for a terminal."""
    rows = [*_rows(comparison, everything)]
    shown_table = text_table(_COLUMNS, rows, width) if comparison.changes else ""
    lines = [*comparison.notes, *undecided(comparison), ended(comparison), comparison.sentence()]
    differ = ["What differs between the sides:", *differing.lines(differences)]
    return shown_table + "".join(f"{one}\n" for one in [*(differ if differences else []), *lines] if one)


def undecided(comparison: Comparison) -> list[str]:
    """Which change the blocks can tell of each metric that is not decided, in sentences."""
    sentences = []
    for change in comparison.open:
        size = f"{change.detectable:.1f} pt" if change.in_points else f"{change.detectable:.1%}"
        less = f"a change of less than {size}" if math.isfinite(change.detectable) else "any change"
        blocks = counted(len(change.a), "block")
        sentences.append(f"{wording.figure(change.key)}: not decided; {blocks} cannot tell {less}")
    return sentences


def ended(comparison: Comparison) -> str:
    """Why it ended and how long it took, in a sentence."""
    took = f"{comparison.spent_s / 60:.0f} min of measuring"
    return f"Ended after {took}: {comparison.ended}." if comparison.ended else ""


def amount(change: Change, value: float) -> str:
    """A change in percent, or in points for loads."""
    if not math.isfinite(value):
        return "?"
    return f"{value:+.1f} pt" if change.in_points else percent(value)


def interval(change: Change) -> str:
    """The bounds of a change."""
    if not math.isfinite(change.high - change.low):
        return "-"
    return f"{amount(change, change.low)} to {amount(change, change.high)}"


def named(comparison: Comparison) -> str:
    """The headline with the largest changes, those for the worse first."""
    changed = [change for change in comparison.changes if change.decision in _CHANGED]
    changed.sort(key=lambda change: (change.decision is not Outcome.WORSE, -abs(change.change)))
    few = [f"{wording.figure(c.key)} {amount(c, c.change)} ({interval(c)})" for c in changed[:_NAMED]]
    return ": ".join(filter(None, [comparison.headline, "; ".join(few)]))


def columns(change: Change) -> list[str]:
    """A and B as printed: with as many digits as the change beside them needs to follow."""
    largest = max(map(abs, change.middles))
    digits = _DIGITS - 1 - math.floor(math.log10(largest)) if largest else 0
    return [rounded(value, max(2, digits)) for value in change.middles]


def as_json(comparison: Comparison, differences: Sequence[Difference] = ()) -> str:
    """Everything, as one object; an interval without an end is null."""
    data = {
        "id": comparison.id,
        "board": comparison.board,
        "a": comparison.a,
        "b": comparison.b,
        "blocks": comparison.blocks,
        "spent_s": round(comparison.spent_s, 1),
        "ended": comparison.ended,
        "false_alarm_rate": comparison.alpha,
        "counts": {str(decision): comparison.count(decision) for decision in Outcome},
        "changes": [
            {
                **change.key._asdict(),
                "decision": str(change.decision),
                "decides": change.key in comparison.waiting,
                "unit": change.quantity.unit,
                "better": str(change.quantity.better),
                "in_points": change.in_points,
                "within": change.within,
                **{name: _finite(getattr(change, name)) for name in _ENDLESS},
                "a": list(change.a),
                "b": list(change.b),
            }
            for change in comparison.changes
        ],
        "differences": [vars(entry) for entry in differences],
        "notes": list(comparison.notes),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_markdown(comparison: Comparison, differences: Sequence[Difference] = ()) -> str:
    """For a merge request: what changed in a table, the rest in sentences."""
    head = f"### A/B on {markdown(comparison.board)}: {comparison.headline}"
    lines = [head, "", markdown(f"{comparison.sentence()}."), ""]
    rows = [
        (str(change.decision), wording.figure(change.key), *_cells(change))
        for change in shown(comparison)
        if change.decision is not Outcome.SAME
    ]
    lines += markdown_table((*_COLUMNS[:1], *_COLUMNS[3:]), rows, Outcome.WORSE)
    lines += [f"{markdown(one)}  " for one in undecided(comparison)]
    if differences:
        lines += ["", *differing.folded(differences, "What differs between the sides")]
    return "\n".join([*lines, markdown(ended(comparison)), ""])


def as_html(comparison: Comparison, differences: Sequence[Difference] = ()) -> str:
    """A page of its own, with both sides' values beside each other."""
    return look.render(
        "publish/report/ab.html.j2",
        look=look.inline(),
        comparison=comparison,
        changes=sorted(comparison.changes, key=lambda change: change.decision not in _CHANGED),
        decided=_CHANGED,
        plot=_sides,
        headline=named(comparison),
        amount=amount,
        interval=interval,
        columns=columns,
        undecided=undecided(comparison),
        ended=ended(comparison),
        differences=list(differing.lines(differences)),
    )


def _sides(change: Change) -> Markup:
    series = [
        drawing.Series(name, list(enumerate(values, 1)))
        for name, values in (("A", change.a), ("B", change.b))
    ]
    return drawing.lines(wording.figure(change.key), series, ("block", change.quantity.unit), zero=False)
