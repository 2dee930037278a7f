"""Tables for the terminal that keep what matters when the terminal is narrow."""

from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.model.outlets import line, markdown, row

_GAP = 2
_NARROWEST = 10
"""Characters that a column which may wrap gets at least."""


@dataclass(frozen=True)
class Column:
    """One column: numbers are aligned `right`, text may `wrap` or be cut to `most` characters. Where the
    table is too wide, the columns with the highest `drop` are left out first; 0 stays.
    """

    heading: str
    right: bool = False
    wrap: bool = False
    most: int | None = None
    drop: int = 0


_CASE_WIDTH = 36


def shortened(case: str) -> str:
    """A case's label for a table: some are whole command lines."""
    return case if len(case) <= _CASE_WIDTH else f"{case[: _CASE_WIDTH - 1]}…"


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """The table, at most `width` characters wide (None: as wide as the terminal)."""
    from rich.console import Console  # noqa: PLC0415  # slow to import

    console = Console(width=width, color_system=None)
    kept = _kept(columns, [[line(cell) for cell in row] for row in rows], console.width)
    with console.capture() as capture:
        console.print(grid([columns[n] for n in kept], [[row[n] for n in kept] for row in rows]))
    return capture.get()


def grid(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> object:
    """The same as a table of rich, with all columns."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False)
    for column in columns:
        shown.add_column(column.heading, no_wrap=not column.wrap, max_width=column.most)
        shown.columns[-1].justify = "right" if column.right else "left"
        shown.columns[-1].overflow = "fold" if column.wrap else "ellipsis"
    for cells in rows:
        shown.add_row(*(Text(line(cell)) for cell in cells))
    return shown


def _kept(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    needs = [
        min(
            max(map(len, [*column.heading.splitlines(), "", *(row[index] for row in rows)])),
            _NARROWEST if column.wrap else column.most or width,
        )
        for index, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    for level in sorted({column.drop for column in columns} - {0}, reverse=True):
        if sum(needs[i] + _GAP for i in kept) - _GAP <= width:
            break
        kept = [index for index in kept if columns[index].drop != level]
    return kept


def markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], emphasised: str) -> list[str]:
    """A Markdown table of text and an empty line; [] without rows. `emphasised` in column one is bold."""
    if not rows:
        return []
    rules = row("---:" if column.right else "---" for column in columns)
    words = [f"**{word}**" if word == emphasised else markdown(word) for word, *_ in rows]
    body = [row([word, *map(markdown, cells)]) for word, (_, *cells) in zip(words, rows, strict=True)]
    return [row(column.heading for column in columns), rules, *body, ""]


_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """Values as bars between their smallest and largest; "" for fewer than two."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[round((value - low) / span * top)] for value in values)
