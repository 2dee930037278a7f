"""`python -m selftests.short_rows [--share SHARE] [--seed SEED] [GUIDE...]`: cells of some boards are
taken out of whole rows of published guides: how many of the others are put into their columns, left
open, or put into wrong ones, as the boards' figures in other guides say.
"""

import argparse
import itertools
import random
import sys
from collections import Counter
from pathlib import Path

from evmperf.guide import importer
from evmperf.guide.witness import Witness
from selftests import guide_reading
from selftests.support import seeds


def counted(file, said, share, chance):
    """Cells of one guide that were put right, wrong, or left open."""
    found = Counter()
    for guide in importer.load_all(file, said[1]):
        witness = Witness(guide.os, guide.file, guide.release)
        for read in filter(None, guide.matches):
            for row in read.rows if len(read.match.boards) > 1 else ():
                if len(row.cells) == len(read.match.columns) and chance.random() < share:
                    found += _of_row(witness, read.match, row)
    return found


def _of_row(witness, match, row):
    found = Counter()
    whose = [column.board for column in match.columns]
    for count in range(1, len(match.boards)):
        for boards in itertools.combinations(match.boards, count):
            places = [n for n, board in enumerate(whose) if board in boards]
            put = witness.spread(match, row.case, [row.cells[n] for n in places])
            right = sum(n in places and row.cells[n] == text for n, text in put.items())
            found += Counter(right=right, wrong=len(put) - right, open=len(places) - len(put))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m selftests.short_rows", description=__doc__)
    parser.add_argument("guides", nargs="*", type=Path, metavar="GUIDE")
    parser.add_argument("--share", type=float, default=0.02, help="of the rows (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    said, chance = guide_reading.truth(), random.Random(options.seed)
    files = options.guides or [*seeds.files(), *seeds.real("guides", "*.rst")]
    total = Counter()
    for file in files:
        total += counted(file, said.get(file.name, ("", "")), options.share, chance)
    print(", ".join(f"{total[word]} {word}" for word in ("right", "wrong", "open")))
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
