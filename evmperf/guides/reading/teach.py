"""A table file's draft for a table that is not known: what can be seen in it, to be checked."""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from evmperf.guides.published import declared, meaning
from evmperf.guides.published.dialect import COLUMN_UNITS
from evmperf.guides.reading.match import columns_of, difference, nearest, row_key, split_header
from evmperf.guides.reading.rows import CellError, figure
from evmperf.guides.reading.source import SourceTable
from evmperf.model.units import Unit

_UNITS = {
    **{str(unit).lower(): unit for unit in Unit},
    **{text.strip("()").lower(): unit for unit, text in reversed(COLUMN_UNITS.items())},
    **{"mb/sec": Unit.MEGABYTE_PER_SECOND, "mbps": Unit.MEGABIT_PER_SECOND, "bytes": Unit.BYTE},
    **{"sec": Unit.SECOND, "usec": Unit.MICROSECOND, "fps": Unit.PER_SECOND},
}
"""What column headers say in parentheses, in lower case."""
_HIGHER = re.compile(r"throughput|bandwidth|fps|rate|score|perf", re.IGNORECASE)
_LOWER = re.compile(r"load|latency|time|power|loss", re.IGNORECASE)


def advice(source: SourceTable) -> str:
    """The table that an unknown one is most like, with the difference and the file."""
    like = [f"nearest is {t.benchmark} ({t.file}): {difference(source, t)}" for t in nearest(source)[:1]]
    return f"{'; '.join(like) or 'it is like no known table'}; `--teach` drafts a file for it"


def write(source: SourceTable, folder: Path = declared.FOLDER) -> Path | None:
    """Write the draft of a table's file; None where there is one of that name already."""
    file = folder / f"{_slug(source.name or ' '.join(source.section[-2:]))}.yaml"
    if file.exists():
        return None
    file.write_text(draft(source), encoding="utf-8")
    declared.load(file)  # raises UsageError for a draft that would not be read
    return file


def draft(source: SourceTable) -> str:
    """The text of a table's file, with what is a guess marked as such."""
    along, _ = meaning.along(source.section)
    about = {quantity: value for quantity, (value, _) in along.items()}
    about |= meaning.said(source.name)
    # A table that has the same columns and rows is one that the draft can be like.
    rows = [row.cells for row in source.rows if row.cells]
    known = next(
        (
            table
            for table in nearest(source, len(declared.tables()))
            if columns_of(table, source.header) and all(table.knows(row_key(row, table)) for row in rows)
        ),
        None,
    )
    boards = {split_header(text)[0] for text in source.header} - {""}
    lines = [
        "# Drafted by `evmperf import-guide --teach`: check the marked lines, then add the name to",
        "# outline.yaml where the table belongs.",
        *([f"like: {known.benchmark}"] if known else []),
        f"title: {_flow(source.name or source.section[-1])}",
        f"section: {_flow(_section(source.section, boards))}",
        f"about: {_flow(about)}  # check: required words of headings and captions",
        f"driver: {known.driver if known else next(iter(about.values()), 'system')}  # check",
    ]
    if not known:
        lines += _columns(source, bool(boards))
    return "\n".join(lines) + "\n"


def _columns(source: SourceTable, boards: bool) -> list[str]:
    """Keys, columns, rows and metrics, as header and cells show them."""
    rows = [row.cells for row in source.rows if len(row.cells) == len(source.header)]
    keys = _key_count(source, rows, boards)
    titles: dict[str, str] = {}
    words: dict[str, str] = {}
    for number, text in enumerate(source.header[keys:], keys):
        title = split_header(text)[1]
        (titles if _figures(rows, number) else words)[_slug(re.sub(r"\([^()]*\)", "", title))] = title
    lines = [f"keys: {_flow(list(source.header[:keys]))}"]
    lines += [] if boards else ["board_in_header: false"]
    lines += ["columns:", *(f"  {name}: {_flow([title])}" for name, title in titles.items())]
    if words:
        lines += ["text_columns:", *(f"  {n}: {_flow([title])}" for n, title in words.items())]
    labels = ["|".join(cell.strip() for cell in row[:keys]) for row in rows]
    lines += [f"more_rows: {_flow('|'.join(map(re.escape, labels)))}"]
    lines += ["metrics:  # check: unit, and which way is better"]
    for name, title in titles.items():
        better = "lower" if _LOWER.search(title) else "higher" if _HIGHER.search(title) else "none"
        said = (text.lower() for text in (*re.findall(r"\(([^()]*)\)", title), *title.split()))
        unit = next((_UNITS[word] for word in said if word in _UNITS), Unit.SCORE)
        lines += [f"  {name}: [{_flow(str(unit))}, {better}]"]
    return lines


def _key_count(source: SourceTable, rows: Sequence[Sequence[str]], boards: bool) -> int:
    """How many columns at the left name the row: those without a board, or without figures."""
    header = enumerate(source.header)
    others = (n for n, text in header if n and (split_header(text)[0] if boards else _figures(rows, n)))
    return next(others, 1)


def _figures(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether all cells of a column are figures or empty."""
    try:
        for row in rows:
            if row[column].strip():
                figure(row[column], "", Unit.MEGABYTE_PER_SECOND)
    except CellError:
        return False
    return True


def _section(path: Sequence[str], boards: set[str]) -> list[str]:
    squeezed = [re.sub(r"[^a-z0-9]", "", board.lower()) for board in boards]
    starts = {part: re.sub(r"[^a-z0-9]", "", part.lower()) or "-" for part in path}
    own = {part for part, start in starts.items() if any(board.startswith(start) for board in squeezed)}
    return [declared.BOARD if part in own else part for part in path]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "table"


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.strip().removesuffix("...").strip()
