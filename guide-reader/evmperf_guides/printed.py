"""The layout of a guide as `evmperf guide --like` fills it: its tables by section."""

from collections.abc import Iterator
from pathlib import Path

from evmperf.judge.published.declared import AGAIN
from evmperf.publish.guide.layout import LayoutLine, Slot
from evmperf_guides import importer
from evmperf_guides.importer import ImportedGuide


def tables(file: Path, release: str) -> list[tuple[tuple[str, ...], Slot | str]]:
    """Each table of a guide with its section; of one that is not known, where it is, in words."""
    return list(of_guide(importer.load(file, release)[0]))


def of_guide(imported: ImportedGuide) -> Iterator[tuple[tuple[str, ...], Slot | str]]:
    """The same of a guide that was read."""
    seen: set[tuple[str, str, str]] = set()
    for source, entry in zip(imported.source.tables, imported.matches, strict=True):
        if entry is None:
            what = source.caption or " / ".join(source.section) or "no caption"
            yield source.section, f"line {source.line} ({what})"
            continue
        rows, keys = [], len(entry.match.table.keys)
        for r in entry.rows:
            whose = {(entry.match.table.benchmark, r.case, board) for board in entry.match.boards or ("",)}
            case = r.case + AGAIN if whose & seen else r.case
            seen |= whose
            rows.append(LayoutLine(case, r.row.cells[:keys], len(r.row.cells)))
        printed = (source.caption, source.caption_style, source.rubric, source.header[:keys])
        yield source.section, Slot(entry.match.table, entry.match.columns, tuple(rows), *printed)
