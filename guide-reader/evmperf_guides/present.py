"""A review for people and programs: lines, a page, Markdown for a merge request, JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec
from jinja2 import ChoiceLoader, FileSystemLoader

from evmperf.judge.published import declared
from evmperf.model.outlets import line, markdown
from evmperf.model.stats import figure_text, percent, rounded
from evmperf.model.units import counted
from evmperf.publish.pages import look
from evmperf.publish.report.columns import Column, markdown_table, sparkline
from evmperf_guides.review import LEAST, GuideReview, Side

QUESTIONS = 5
"""Questions that page and Markdown show at once."""
_ROWS = 60
"""Changes that they list."""
_CHANGES = ("section", "board", "figure", "before", "now", "change", "trend")


def head(reviewed: GuideReview) -> str:
    """What was reviewed, and what came of it, in one line."""
    guide, shown = reviewed.guide, reviewed.shown
    folded = len(reviewed.remarks) - len(shown)
    more = f", {folded} more folded" if folded else ""
    boards = ", ".join(guide.results)
    return f"{guide.os} {guide.release}, {boards}: {counted(len(shown), 'question')}{more}"


def lines(reviewed: GuideReview, cases: bool = False) -> Iterator[str]:
    """The questions, each in a line; with `cases` what to type to measure each again."""
    yield head(reviewed)
    for one in reviewed.shown:
        yield f"line {one.line}: {line(str(one))}"
        if cases and one.row and one.kind in ("jump", "exchanged", "noise", "copied", "evidence", "order"):
            is_word = one.row.replace("_", "").isalnum()
            case = f"'{one.table} and {one.row}'" if is_word else one.table
            yield f"  pytest --lg-env BOARD.yaml -k {case}"


def as_json(reviewed: GuideReview) -> str:
    """Every remark, folded ones too."""
    remarks = [asdict(one) | {"question": one.question} for one in reviewed.remarks]
    guide = reviewed.guide
    about = {"guide": guide.file, "os": guide.os, "release": guide.release, "boards": list(guide.results)}
    return msgspec.json.format(msgspec.json.encode(about | {"remarks": remarks}), indent=1).decode() + "\n"


def changes(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    """The figures that moved most since the board's last release, by section: rows of section, board, figure,
    the releases before, the guide's own, the change, and all of these as a line.
    """
    found = []
    for side in (one for one in sides if not one.relative):
        for key, figure in side.figures.items():
            earlier = side.before(key, figure.unit)[-2:]
            if not earlier or not earlier[-1] or abs(figure.mean / earlier[-1] - 1) < LEAST:
                continue
            table = declared.tables().get(key.benchmark)
            section = " / ".join(table.section) if table else ""
            change = figure.mean / earlier[-1] - 1
            before, now = ", ".join(map(rounded, earlier)), figure_text(figure.mean, figure.low, figure.high)
            shown = (percent(change), sparkline((*earlier, figure.mean)))
            place = (section, key.benchmark, -abs(change))
            found.append((place, (section, side.board, str(key), before, now, *shown)))
    most = sorted(found, key=lambda one: one[0][-1])[:_ROWS]
    return [row for _, row in sorted(most, key=lambda one: one[0])]


def as_markdown(reviewed: GuideReview) -> str:
    """For a merge request: the first questions, then the changes."""
    asked = [markdown(str(one)) for one in reviewed.shown]
    parts = [f"**{markdown(head(reviewed))}**", ""]
    parts += [f"{n}. {one}" for n, one in enumerate(asked[:QUESTIONS], 1)]
    if rest := asked[QUESTIONS:]:
        parts += ["", f"<details><summary>{counted(len(rest), 'more question')}</summary>", ""]
        parts += [*(f"* {one}" for one in rest), "", "</details>"]
    columns = [Column(heading, right=heading in ("before", "now", "change")) for heading in _CHANGES]
    parts += ["", *markdown_table(columns, changes(reviewed.sides), "")]
    return "\n".join(parts).rstrip("\n") + "\n"


def as_html(reviewed: GuideReview) -> str:
    """The same as a page in one file."""
    pages = look.environment()
    own = FileSystemLoader(Path(__file__).parent)
    page = pages.overlay(loader=ChoiceLoader([own, *filter(None, [pages.loader])]))
    return page.get_template("review.html.j2").render(
        look=look.inline(plots=False),
        title=f"Review of {reviewed.guide.os} {reviewed.guide.release}",
        head=head(reviewed),
        asked=reviewed.shown[:QUESTIONS],
        rest=reviewed.shown[QUESTIONS:],
        headings=_CHANGES,
        changes=changes(reviewed.sides),
    )
