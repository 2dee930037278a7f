"""Take cells of some boards out of whole rows of published guides: how many rows are put into their
columns, left open, or put into wrong ones, as the record says without the guide, and without all guides
of its release.
"""

import functools
import itertools
import sys
from collections import Counter
from pathlib import Path

from evmperf.guides.reading import importer
from evmperf.guides.reading.settle import Witness
from selftests.instruments import command, guide_reading
from selftests.support import seeds

_MOST = 62
"""Readings of one row that are tried: all of six boards."""


class WithoutRelease(Witness):
    """A witness that has seen no guide of the release."""

    @functools.cache  # noqa: B019  # one guide's, and short-lived
    def _history(self, board):
        known = super()._history(board).items()
        return {key: {t: one for t, one in series.items() if t != self.release} for key, series in known}


def tried(guide, witness, every=1):
    """How often cells of one guide's rows were put right, wrong, or left open."""
    found = Counter()
    for read in filter(None, guide.matches):
        columns = [column.board for column in read.match.columns]
        whole = [row for row in read.rows if all(row.row.cells) and len(read.match.boards) > 1]
        for row in whole[::every]:
            cells = row.row.cells[len(read.match.table.keys) :]
            others = [other for other in read.rows if other is not row]
            for boards in itertools.islice(_some(read.match.boards), _MOST):
                left = [text for text, board in zip(cells, columns, strict=False) if board in boards]
                right = [text if board in boards else "" for text, board in zip(cells, columns, strict=False)]
                placed, how = witness.spread(read.match, row.case, left, others)
                verdict = "open" if not placed else "right" if placed == right else "wrong"
                found[verdict, how] += 1
                if verdict == "wrong":
                    print(f"{guide.file} line {row.row.line}: {boards}: {left} became {placed}")
    return found


def _some(boards):
    counts = range(len(boards) - 1, 0, -1)
    return itertools.chain.from_iterable(itertools.combinations(boards, count) for count in counts)


def counted(files, every=1):
    """What `tried` counts in guides, by witness."""
    said, totals = guide_reading.truth(), {Witness: Counter(), WithoutRelease: Counter()}
    for file in files:
        for guide in importer.load_all(file, said.get(file.name, ("", ""))[1]):
            for kind, total in totals.items():
                total.update(tried(guide, kind(guide.os, guide.file, guide.release), every))
    return totals


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("guides", nargs="*", type=Path, metavar="GUIDE")
    parser.add_argument("--every", type=int, default=1, help="row that is tried (default: each)")
    options = parser.parse_args(words)
    totals = counted(options.guides or [*seeds.files(), *seeds.real("guides", "*.rst")], options.every)
    for kind, total in totals.items():
        words = ", ".join(f"{number} {' '.join(key).strip()}" for key, number in sorted(total.items()))
        print(f"{kind.__name__}: {total.total()} short rows: {words}")
    return int(any(key[0] == "wrong" for total in totals.values() for key in total))


if __name__ == "__main__":
    sys.exit(main())
