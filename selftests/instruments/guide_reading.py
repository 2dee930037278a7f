"""How many figures of published guides come back the same, are refused with a reason, or are wrong;
with the reasons, the most frequent first.

Each guide is imported, its figures are taken out of its text, and a guide like what is left is
written from what was imported. The cells of both are compared here, as text. A figure that comes
back otherwise is wrong, as is one of another operating system or release than the README beside
the guides says.
"""

import itertools
import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from evmperf_guides import importer, printed, rst, settle, source

from evmperf.model.errors import UsageError
from evmperf.model.figures import figures
from evmperf.publish.guide import layout, writer
from selftests.instruments import command
from selftests.support import seeds

_FIGURE = re.compile(r"~?-?[0-9.]+( \(min .*\))?( ?[A-Za-z%/]+)?")


@dataclass
class Count:
    """Figures of one guide, and why some of them were refused."""

    name: str
    same: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: Counter = field(default_factory=Counter)

    @property
    def total(self):
        return self.same + len(self.wrong) + self.refused.total()


def truth():
    """Operating system and release by file name, as the README beside the guides says them."""
    (readme,) = seeds.real("guides", "README.md") or [None]
    rows = re.findall(r"^\| (\S+\.rst) \| (\S+) \| (\S+)", readme.read_text(), re.M) if readme else ()
    return {name: (os, release) for name, os, release in rows}


def counted(file, said=("", "")):
    """The count of one guide; `said` is what is known of its operating system and release."""
    text, count = file.read_text(encoding="utf-8"), Count(file.stem)
    try:
        guides = importer.load(file, said[1])
    except UsageError as error:
        count.refused[str(error)] += sum(_is_figure(c) for c in _cells(text))
        return count
    for number, imported in enumerate(guides):
        _compare(imported, text, count)
        known = (imported.os, imported.release)
        if not number and said[0] and known not in (said, (source.UNKNOWN_OS, said[1])):
            count.wrong.append(f"is of {said}, read as of {imported.os} {imported.release}")
    return count


def shortened(imported):
    """Of whole rows of UDP without the cells of some boards: how many of the others are put into columns,
    and the rows and boards of those put into a wrong one.
    """
    placed, wrong, named = 0, [], settle.boards(imported.source)
    witness = settle.Witness(imported.os, imported.file, imported.release, named)
    udp = (table for table in imported.matches if table and "_udp_" in table.match.table.benchmark)
    for table in udp:
        fit, short = table.match, table.short
        whole = [row for row in table.rows if row.row.line not in {one.line for one in short}]
        for row in whole:
            cells = row.row.cells[len(fit.table.keys) :]
            others = replace(table, rows=[one for one in whole if one != row])
            sets = (itertools.combinations(fit.boards, count) for count in range(1, len(fit.boards)))
            for boards in itertools.chain(*sets):
                mine = [column.board in boards for column in fit.columns]
                found, _ = witness.place(others, row.case, [*itertools.compress(cells, mine)])
                placed += sum(map(bool, found))
                own = zip(found, cells, mine, strict=True) if found else ()
                wrong += [(row.row, boards) for cell, text, is_mine in own if cell and cell != text * is_mine]
    return placed, wrong


def _cells(text):
    return (cell for t in rst.read(text).tables for row in t.rows for cell in row.cells[1:])


def _is_figure(cell):
    return bool(_FIGURE.fullmatch(cell.strip()))


def _compare(imported, text, count):
    back = _rendered(imported, text)
    reasons = {problem.line: problem.reason for problem in imported.unknown}
    for table, read in zip(imported.source.tables, imported.matches, strict=True):
        keys = len(read.match.table.keys) if read else 1
        written = back.get((table.section, table.caption), [])
        now = next((w for w in written if read and set(w[0]) <= set(table.header)), ((), {}))
        if now in written:
            written.remove(now)
        # A short row that was read has its cells in their columns.
        placed = {r.row.line: r.row for r in read.rows} if read else {}
        for printed_row in table.rows:
            row, seen = placed.get(printed_row.line, printed_row), 0
            for title, cell in zip(table.header[keys:], row.cells[keys:], strict=False):
                if read and any(column.printed == title and column.words for column in read.match.columns):
                    continue
                if not _is_figure(cell):
                    continue
                seen += 1
                found = now[1].get((row.cells[:keys], title), "")
                if found == cell:
                    count.same += 1
                elif found:
                    count.wrong.append(f"line {row.line}: {cell!r} came back as {found!r}")
                else:
                    at = row.line if row.line in reasons else table.line
                    count.refused[reasons.get(at, "without a reason")] += 1
            if row != printed_row:  # a short row, of which some cells may be of an unknown board
                left = sum(map(_is_figure, printed_row.cells[keys:])) - seen
                count.refused[reasons.get(row.line, "without a reason")] += left


def _rendered(imported, text):
    """By section and caption, the tables of a guide like this without its figures: cell by key
    cells and header.
    """
    guides = importer.interpret(blanked(imported, text), imported.file, imported.release)
    empty = next((g for g in guides if g.source.title == imported.source.title), guides[0])
    known = {board: figures(results) for board, results in imported.results.items()}
    written = writer.render(
        layout.like(printed.of_guide(empty), known), known, writer.Head(imported.release, imported.os)
    )
    found = {}
    for table in rst.read(written).tables:
        cells = {}
        for row in table.rows:
            for keys in (1, 2, 3):
                for title, cell in zip(table.header[keys:], row.cells[keys:], strict=False):
                    cells[row.cells[:keys], title] = cell
        found.setdefault((table.section, table.caption), []).append((table.header, cells))
    return found


def blanked(imported, text):
    """A guide's text with all its figures taken out."""
    lines = text.splitlines()
    for table in imported.matches:
        for row in table.rows if table else ():
            cells = list(row.row.cells)
            keys = len(table.match.table.keys)
            words = [column.words for column in table.match.columns]
            for number, isword in enumerate(words, keys):
                if number < len(cells) and not isword:
                    cells[number] = ""
            line = lines[row.row.line - 1]
            indent = line[: len(line) - len(line.lstrip())]
            lines[row.row.line - 1] = indent + ",".join(f'"{cell}"' for cell in cells)
    return "\n".join(lines)


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("guides", nargs="*", type=Path, metavar="GUIDE")
    options = parser.parse_args(words)
    said = truth()
    files = options.guides or [*seeds.files(), *seeds.real("guides", "*.rst")]
    counts = [counted(file, said.get(file.name, ("", ""))) for file in files]
    print(f"{'guide':68} {'figures':>7} {'same':>7} {'refused':>7} {'wrong':>6}")
    refused = Counter()
    for count in counts:
        print(
            f"{count.name:68} {count.total:7} {count.same:7} {count.refused.total():7} {len(count.wrong):6}"
        )
        refused += count.refused
        for line in count.wrong:
            print(f"    wrong: {line}")
    total, same = sum(c.total for c in counts), sum(c.same for c in counts)
    wrong = sum(len(c.wrong) for c in counts)
    print(f"{len(counts)} guides, {total} figures: {same} the same ({same / max(total, 1):.2%}), ", end="")
    print(f"{refused.total()} refused, {wrong} wrong")
    for reason, number in refused.most_common():
        print(f"{number:6} {reason}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
