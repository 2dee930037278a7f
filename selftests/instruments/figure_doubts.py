"""How many figures of the record that cannot be right are noticed, and how many of the others are
doubted.

A figure cannot be right that is more than 2.5 times off its board's other releases, three or more
that are all within a factor of 1.5 of each other. Of the others, those are counted that are doubted
for their history; what a fault of TI's programs explains (lmbench's rows of two operations) is not.
Then steady figures are made wrong on purpose, one at a time.
"""

import random
import sys
from dataclasses import dataclass, field

from evmperf.guides.published import artefacts, identity, record, source, steady
from evmperf.model.figures import figures
from selftests.instruments import command

OFF, WITHIN, OTHERS = 2.5, 1.5, 3
FACTORS = (0.1, 0.3, 3.0, 10.0)
LEAST, MOST = 150 / 186, 1 / 200
"""Shares wanted: of those that cannot be right, and of the others."""


@dataclass
class Count:
    """Figures that cannot be right and others, with the reasons of those that were noticed."""

    wrong: int = 0
    others: int = 0
    noticed: list = field(default_factory=list)
    missed: list = field(default_factory=list)
    doubted: list = field(default_factory=list)
    changed: dict = field(default_factory=lambda: {factor: [0, 0] for factor in FACTORS})


def cannot_be_right(mean, others):
    """Whether a figure is off an otherwise steady history."""
    return len(others) >= OTHERS and is_steady(others) and not min(others) / OFF <= mean <= max(others) * OFF


def is_steady(values):
    return min(values) > 0 and max(values) <= WITHIN * min(values)


def counted(chance):
    """The counts of every board and release of the record."""
    count = Count()
    for entry in source.guides():
        known = figures(entry.results())
        explained = artefacts.doubts(known)
        doubts = steady.doubts(entry.run, known)
        time = record.same_time(entry.run.release)
        history = steady.history(identity.board(entry.run.board), entry.run.os)
        for key, figure in known.items():
            others = [m for t, (_, u, m) in history[key].items() if t != time and u == figure.unit]
            line = f"{entry.run.board} {entry.run.os} {entry.run.release} {key} {figure.mean:g}: "
            if cannot_be_right(figure.mean, others):
                count.wrong += 1
                (count.noticed if key in doubts else count.missed).append(
                    line + doubts.get(key, "not noticed")
                )
                continue
            count.others += 1
            if key in doubts and key not in explained:
                count.doubted.append(line + doubts[key])
            if len(others) >= OTHERS and is_steady([*others, figure.mean]) and chance.random() < 0.1:
                for factor, found in count.changed.items():
                    why = steady.out_of_line(figure.mean * factor, figure.unit, history[key], time)
                    found[0] += bool(why)
                    found[1] += 1
    return count


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--list", action="store_true", help="every figure, with the reason")
    parser.add_argument("--seed", type=int, default=0, help="which figures are made wrong (default: 0)")
    options = parser.parse_args(words)
    count = counted(random.Random(options.seed))
    if options.list:
        for title, lines in (
            ("noticed", count.noticed),
            ("missed", count.missed),
            ("doubted", count.doubted),
        ):
            print(f"{title}:", *lines, sep="\n    ")
    noticed, doubted = len(count.noticed) / count.wrong, len(count.doubted) / count.others
    print(f"{len(count.noticed)} of {count.wrong} figures that cannot be right are noticed ({noticed:.1%})")
    print(f"{len(count.doubted)} of {count.others} others are doubted ({doubted:.2%})")
    for factor, (found, tried) in count.changed.items():
        print(f"times {factor:g}: {found} of {tried} noticed ({found / max(tried, 1):.1%})")
    return int(noticed < LEAST or doubted > MOST)


if __name__ == "__main__":
    sys.exit(main())
