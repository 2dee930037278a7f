"""`python -m selftests.guide_mutations [EACH]`: mistakes that a writer commits, in every table of
every guide that is there; EACH takes every n-th table only. With `--coverage` only the table that
comes first: how much of each published guide is read as it is.

Each mistake is made in one place of one table, which stands in a small guide of its own with two
others beside it. What comes out is compared with what the table says: a figure that differs, or is
of another row, metric or board, is wrong, and accepted in silence where no problem and no remark
is new. A wrong digit in a number that is printed once and stays plausible is not among the
mistakes: nothing in a guide shows it.
"""

import argparse
import itertools
import re
import sys
from collections import Counter

from evmperf.guide import importer
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.figures import figures as known_figures
from evmperf.published import artefacts
from selftests.guide_mistakes import MISTAKES, Piece
from selftests.speed.guides import texts
from selftests.support import seeds

BAR = "=" * 40


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
        yield title, found.tables, read, found.cells, found.cells - found.unknown_cells, said


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


def tried(every=1, guides=None):
    """For each mistake: how often it was made, how many wrong numbers that gave, and those that
    were accepted in silence, with the guide's text.
    """
    known = list(pieces(guides))
    by_guide = {}
    for piece in known:
        by_guide.setdefault(piece.guide, []).append(piece)
    made, wrong, silent = Counter(), Counter(), {}
    for piece in itertools.islice(known, 0, None, every):
        others = _beside(piece, by_guide[piece.guide])
        right = importer.interpret(guide_of(piece, piece.text(), others))
        truth, before = values(right), reasons(right)
        for name, mistakes in MISTAKES.items():
            for body in mistakes(piece):
                made[name] += 1
                text = guide_of(piece, body, others)
                try:
                    imported = importer.interpret(text)
                except UsageError:
                    continue
                found = values(imported)
                bad = [key for key, value in found.items() if truth.get(key) != value]
                wrong[name] += len(bad)
                bad = [key for key in bad if not _doubted(key, imported)]
                if bad and not reasons(imported) - before:
                    silent.setdefault(name, []).append((piece, bad, text))
    return made, wrong, silent


def report(every=1):
    """Print the counts; returns how many wrong numbers were accepted in silence."""
    made, wrong, silent = tried(every)
    print(f"{'mistake':48} {'made':>6} {'wrong numbers':>14} {'in silence':>11}")
    for name in MISTAKES:
        count = sum(len(bad) for _, bad, _ in silent.get(name, ()))
        print(f"{name:48} {made[name]:6} {wrong[name]:14} {count:11}")
    total = sum(len(bad) for found in silent.values() for _, bad, _ in found)
    guides = len({piece.guide for piece in pieces()})
    print(
        f"{sum(made.values())} mistakes in the tables of {guides} guides: "
        f"wrong numbers accepted in silence: {total} of {sum(wrong.values())}"
    )
    for name, found in silent.items():
        piece, bad, _ = found[0]
        print(f"{name}: {piece.guide} {piece.benchmark} {piece.caption!r}: {bad[:2]}")
    return total


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m selftests.guide_mutations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("each", nargs="?", type=int, default=1, metavar="EACH")
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args(arguments)
    print_coverage()
    return 0 if options.coverage else int(report(options.each) > 0)


if __name__ == "__main__":
    sys.exit(main())
