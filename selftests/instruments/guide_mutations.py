"""Make mistakes that a writer commits in the tables of all guides here, in a random order.

It takes 4 minutes of processor time, or makes all of them (`--all`). `--coverage` tells instead how
much of each published guide is read as it is.

Each mistake is made in one place of one table, which stands in a small guide of its own with two
others beside it. What comes out is compared with what the table says: a figure that differs, or is
of another row, metric or board, is wrong, and accepted in silence where no problem and no remark
is new. A wrong digit in a number that is printed once and stays plausible is not among the
mistakes: nothing in a guide shows it.
"""

import itertools
import math
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from evmperf.guides.published import artefacts
from evmperf.guides.reading import importer
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.figures import figures as known_figures
from selftests.instruments import command
from selftests.instruments.guide_mistakes import MISTAKES, Piece
from selftests.instruments.speed.guides import texts
from selftests.support import seeds

BAR = "=" * 40
TOGETHER = 8
"""Mistakes of one table that are made one after the other: its guide is read once for them."""


def published():
    """The published guides that are there: name and text."""
    files = (*seeds.files(), *seeds.real("guides", "*.rst"))
    return [(file.stem, file.read_text()) for file in files]


def coverage():
    """Of each published guide that is there: its title, how many tables and cells it has, how many
    of these are read, and what is said of the others.
    """
    for name, text in published():
        found = importer.interpret(text, name)
        read = sum(match is not None for match in found.matches)
        title = f"{name}: {found.os} {found.release}"
        said = [f"line {problem.line}: {problem.reason}" for problem in found.unknown]
        yield title, len(found.matches), read, found.cells, found.cells - found.unknown_cells, said


def print_coverage():
    print(f"{'guide':44} {'tables':>7} {'read':>6} {'cells':>7} {'read':>7}")
    for title, tables, read, cells, known, said in coverage():
        print(f"{title:44} {tables:7} {read:6} {cells:7} {known:7}")
        for problem in said:
            print(f"    {problem}")
    print()


def pieces(guides=None):
    """Every known table of the guides that are there (or of so many): published ones, and those of
    baselines/.
    """
    everything = [*published(), *texts().items()]
    for name, text in everything[-guides:] if guides else everything:
        imported = importer.interpret(text, name)
        for table, read in zip(imported.source.tables, imported.matches, strict=True):
            if read is None or not any(row.figures for row in read.rows):
                continue
            keys = len(read.match.table.keys)
            whole = tuple(r.row.cells for r in read.rows if len(r.row.cells) == len(table.header))
            if not whole:
                continue
            title = f"{imported.os} {imported.release} Performance Guide"
            section = tuple(part.strip() for part in table.section)
            yield Piece(
                name, title, section, table.caption, table.header, whole, keys, read.match.table.benchmark
            )


def guide_of(piece, body, others):
    beside = "".join(other.text() for other in others)
    return f"{BAR}\n {piece.title}\n{BAR}\n\n{beside}{body}"


def values(imported):
    return {
        (board, result.benchmark, result.case, figure.metric): (
            figure.mean,
            figure.low,
            figure.high,
            figure.unit,
        )
        for board, results in imported.results.items()
        for result in results
        for figure in result.published
    }


def reasons(imported):
    return Counter(re.sub(r"lines? [0-9, -]+", "", problem.reason) for problem in imported.problems)


def _doubted(place, imported):
    """Whether a figure is one that was reported as doubtful already, for another reason."""
    board, *key = place
    return Key(*key) in artefacts.doubts(known_figures(imported.results[board]))


def _beside(piece, of_guide):
    """The tables of its section that have its columns, for which it may be taken, and others."""
    rest = [other for other in of_guide if other.benchmark != piece.benchmark]
    mine = set(piece.header)
    siblings = [other for other in rest if other.section == piece.section and mine <= set(other.header)]
    return [*siblings, *(other for other in rest if other not in siblings)][: 2 + len(siblings)]


@dataclass
class Tried:
    """For each mistake: how many there are, how often it was made, how many wrong numbers that gave,
    and those that were accepted in silence, with the guide's text.
    """

    there: Counter = field(default_factory=Counter)
    made: Counter = field(default_factory=Counter)
    wrong: Counter = field(default_factory=Counter)
    silent: dict = field(default_factory=dict)
    guides: int = 0

    def __str__(self):
        made, there = self.made.total(), self.there.total()
        return (
            f"{made} of {there} mistakes ({made / max(there, 1):.2%}) in the tables of {self.guides} guides: "
            f"wrong numbers accepted in silence: {self.accepted()} of {self.wrong.total()}"
        )

    def accepted(self, name=None):
        """How many wrong numbers of a mistake, or of all, were accepted in silence."""
        return sum(
            len(bad) for one, found in self.silent.items() if name in (None, one) for _, bad, _ in found
        )


def tried(guides=None, seconds=math.inf, seed=0, progress=lambda done: None):
    """The mistakes made in a random order, some of a table together, until the time is up."""
    end = time.process_time() + seconds
    done, chance = Tried(), random.Random(seed)
    by_guide, chunks = {}, []
    for piece in pieces(guides):
        by_guide.setdefault(piece.guide, []).append(piece)
        bodies = [
            (name, number) for name, mistakes in MISTAKES.items() for number, _ in enumerate(mistakes(piece))
        ]
        done.there.update(name for name, _ in bodies)
        chance.shuffle(bodies)
        chunks += [(piece, bodies[first : first + TOGETHER]) for first in range(0, len(bodies), TOGETHER)]
    done.guides = len(by_guide)
    chance.shuffle(chunks)
    for number, (piece, bodies) in enumerate(chunks):
        if time.process_time() > end:
            break
        _try(done, piece, bodies, _beside(piece, by_guide[piece.guide]))
        if not number % 100:
            progress(done)
    return done


def _try(done, piece, bodies, others):
    right = importer.interpret(guide_of(piece, piece.text(), others))
    truth, before = values(right), reasons(right)
    for name, number in bodies:
        body = next(itertools.islice(MISTAKES[name](piece), number, None))
        done.made[name] += 1
        text = guide_of(piece, body, others)
        try:
            imported = importer.interpret(text)
        except UsageError:
            continue
        found = values(imported)
        bad = [key for key, value in found.items() if truth.get(key) != value]
        done.wrong[name] += len(bad)
        bad = [key for key in bad if not _doubted(key, imported)]
        if bad and not reasons(imported) - before:
            done.silent.setdefault(name, []).append((piece, bad, text))


def report(done):
    """Print the counts; returns how many wrong numbers were accepted in silence."""
    print(f"{'mistake':48} {'there':>7} {'made':>6} {'wrong numbers':>14} {'in silence':>11}")
    for name in MISTAKES:
        counts = f"{done.there[name]:7} {done.made[name]:6} {done.wrong[name]:14} {done.accepted(name):11}"
        print(f"{name:48} {counts}")
    print(done)
    for name, found in done.silent.items():
        for piece, bad, _ in found[:5]:
            print(f"{name}: {piece.guide} {piece.benchmark} {piece.caption!r}: {bad[:2]}")
    return done.accepted()


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--seconds", type=float, default=240, help="of processor time (default: 240)")
    parser.add_argument("--seed", type=int, default=0, help="of the random order (default: 0)")
    parser.add_argument("--all", action="store_true", help="make every mistake, however long it takes")
    parser.add_argument("--coverage", action="store_true", help="how much of each guide is read as it is")
    options = parser.parse_args(words)
    if options.coverage:
        print_coverage()
        return 0
    seconds = math.inf if options.all else options.seconds
    done = tried(None, seconds, options.seed, lambda done: print(done, file=sys.stderr, flush=True))
    return int(report(done) > 0)


if __name__ == "__main__":
    sys.exit(main())
