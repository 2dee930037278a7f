"""A review for people and programs: lines, a page, Markdown for a merge request, JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import msgspec
from markupsafe import Markup, escape

from evmperf.judge.published import declared
from evmperf.model.outlets import line, markdown, row
from evmperf.model.stats import figure_text, percent, rounded
from evmperf.model.units import counted
from evmperf.publish.pages import look
from evmperf.publish.report.columns import sparkline
from evmperf_guides.review import LEAST, GuideReview, Remark, Side

QUESTIONS = 5
"""Questions that page and Markdown show at once."""
_RELEASES = 3
_ROWS = 60
"""Changes that they list."""


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
            yield f"  pytest --lg-env BOARD.yaml -k {again(one)}"


def again(remark: Remark) -> str:
    """What measures the case of a remark again, for pytest's -k."""
    return f"'{remark.table} and {remark.row}'" if remark.row.replace("_", "").isalnum() else remark.table


def as_json(reviewed: GuideReview) -> str:
    """Every remark, folded ones too."""
    names = ("kind", "board", "table", "row", "column", "figure", "against", "line", "folded")
    remarks = [
        {name: asdict(one)[name] for name in names} | {"question": one.question} for one in reviewed.remarks
    ]
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
            earlier = side.before(key, figure.unit)[-(_RELEASES - 1) :]
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
    shown = reviewed.shown
    parts = [f"**{markdown(head(reviewed))}**", ""]
    parts += [f"{n}. {markdown(str(one))}" for n, one in enumerate(shown[:QUESTIONS], 1)]
    if rest := shown[QUESTIONS:]:
        parts += ["", f"<details><summary>{counted(len(rest), 'more question')}</summary>", ""]
        parts += [*(f"* {markdown(str(one))}" for one in rest), "", "</details>"]
    if rows := changes(reviewed.sides):
        parts += [
            "",
            "| section | board | figure | before | now | change | |",
            "|---|---|---|--:|--:|--:|---|",
        ]
        parts += [row([*map(markdown, cells), change, trend]) for *cells, change, trend in rows]
    return "\n".join(parts) + "\n"


def as_html(reviewed: GuideReview) -> str:
    """The same as a page in one file."""
    shown, style = reviewed.shown, look.inline(plots=False).style
    title = escape(f"Review of {reviewed.guide.os} {reviewed.guide.release}")
    items = [Markup("<li>{} <small>line {}</small></li>").format(str(one), one.line) for one in shown]
    rows = [
        Markup("<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>").format(*cells)
        for cells in changes(reviewed.sides)
    ]
    rest = items[QUESTIONS:]
    folded = Markup("<details><summary>{}</summary><ul>{}</ul></details>").format(
        counted(len(rest), "more question"), Markup("\n").join(rest)
    )
    table = Markup(
        "<table><thead><tr><th>section<th>board<th>figure<th>before<th>now<th>change<th>trend</tr></thead>"
        "<tbody>{}</tbody></table>"
    ).format(Markup("\n").join(rows))
    return Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width"><title>{0}</title>{1}</head><body><main><h1>{0}</h1><p>{2}</p>'
        "<ol>{3}</ol>{4}<h2>Changes since the last release</h2>{5}</main></body></html>\n"
    ).format(
        title, style, head(reviewed), Markup("\n").join(items[:QUESTIONS]), folded if rest else "",
        table if rows else "none",
    )  # fmt: skip
