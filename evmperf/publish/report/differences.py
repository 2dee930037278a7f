"""What differs between two sides, as text."""

import itertools
from collections.abc import Iterator, Sequence

from evmperf.measure.runs.differences import Difference
from evmperf.model.outlets import fenced, line

_MOST = 12
"""Lines of one area, unless all are wanted: a new kernel changes thousands of options."""
_WIDTH = 120


def text(differences: Sequence[Difference], *, everything: bool = False) -> str:
    """One line a difference, by area."""
    if not differences:
        return "The two have no known differences.\n"
    return "".join(f"{one}\n" for one in lines(differences, everything=everything))


def lines(differences: Sequence[Difference], *, everything: bool = False) -> Iterator[str]:
    """The same line by line."""
    for area, group in itertools.groupby(differences, key=lambda entry: entry.area):
        entries = list(group)
        shown = entries if everything else entries[:_MOST]
        yield f"{area}:"
        for entry in shown:
            side, value = ("A", entry.a) if entry.a else ("B", entry.b)
            text = f"only in {side}: {entry.what}{'' if value == 'yes' else f' = {value}'}"
            if entry.a and entry.b:
                text = f"{entry.what}: {entry.a} in A, {entry.b} in B"
            cut = "" if everything or len(line(text)) <= _WIDTH else "..."
            yield f"  {line(text)[: _WIDTH if cut else None]}{cut}"
        if len(shown) < len(entries):
            yield f"  ... and {len(entries) - len(shown)} more (--all)"


def folded(differences: Sequence[Difference], title: str) -> list[str]:
    """Lines of Markdown: a title that unfolds."""
    head = [f"<details><summary>{title}</summary>", ""]
    return [*head, *fenced(lines(differences)), "", "</details>", ""]
