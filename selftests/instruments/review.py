"""What a review would have asked of published guides before TI repaired them, and of guides never repaired.

The record's habits are those of guides before the date of --before; repairs after it are measured alone. Of
other guides of the release those count that are older than the guide, or than its repair. A row counts as
named if a question that is shown, or what is folded behind it, is about its line.
"""

import csv
import re
import statistics
import sys
from collections import Counter

from evmperf_guides import importer, review

from evmperf.judge.published import record
from selftests.instruments import command
from selftests.support import seeds

FITTED = "2025-06"
LARGE = 0.10
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def repairs():
    """By guide (file before the repair, date, release) the repaired lines, with whether they changed much."""
    (table,) = seeds.real("guide-repairs", "repairs.tsv") or [None]
    if table is None:
        return {}
    found = {}
    with table.open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE):
            file = table.with_name(f"{row['commit']}.{row['guide']}.before.rst")
            guide = found.setdefault((file, row["date"], row["release"]), {})
            guide[int(row["line"])] = large(row["before"], row["after"])
    return found


def large(before, after):
    """Whether a figure of a row changed by more than a tenth, or the row has other figures."""
    old, new = ([float(n) for n in _NUMBER.findall(text.partition(",")[2])] for text in (before, after))
    if len(old) != len(new):
        return True
    return any(abs(n - o) > LARGE * abs(o) for o, n in zip(old, new, strict=True))


def asked(file, release, before="", until=""):
    """The remarks on a guide, and the lines that shown questions and those folded behind them are about."""
    text = file.read_text(encoding="utf-8")
    imported = importer.load(file, release)[0]
    until = until or record.date_in(file.name)
    remarks = review.review(imported, text, before=before, until=until).remarks
    shown = {(one.kind, one.table) for one in remarks if not one.folded}
    return remarks, {one.line: one.kind for one in remarks if (one.kind, one.table) in shown}


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--before", default=FITTED, help="habits of guides before (default: %(default)s)")
    parser.add_argument("--rows", action="store_true", help="each repaired row that was not named")
    options = parser.parse_args(words)
    kinds, sums = Counter(), {}
    print(f"{'repaired guide':34} {'rows':>5} {'named':>5} {'>10 %':>6} {'named':>5} {'asked':>6}")
    broken = {file.name.split(".")[0] for file, _, _ in repairs()}
    for (file, date, release), lines in sorted(repairs().items(), key=lambda item: item[0][1]):
        remarks, about = asked(file, release, options.before, date)
        named = set(lines) & set(about)
        kinds.update(about[line] for line in named)
        much = {line for line, is_large in lines.items() if is_large}
        shown = sum(not one.folded for one in remarks)
        row = (len(lines), len(named), len(much), len(much & named))
        print(f"{date} {file.name[:-11]:23} {row[0]:5} {row[1]:5} {row[2]:6} {row[3]:5} {shown:6}")
        for line in sorted(much - named) if options.rows else ():
            print(f"      line {line}: {file.read_text().splitlines()[line - 1].strip()[:120]}")
        part = "fitted" if date < options.before else "measured"
        sums[part] = [a + b for a, b in zip(sums.get(part, [0] * 4), row, strict=True)]
    for part, (rows, named, much, of_much) in sums.items():
        print(
            f"{part}: {named} of {rows} rows named, {of_much} of {much} ({of_much / max(much, 1):.0%}) >10 %"
        )
    print("named by: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))
    counts, kinds = [], Counter()
    for file in seeds.real("guides", "*.rst"):
        if file.name.split(".")[-2] in broken:
            continue
        remarks, _ = asked(file, "")
        counts.append(sum(not one.folded for one in remarks))
        kinds.update(one.kind for one in remarks if not one.folded)
    if counts:
        middle = statistics.median(counts)
        print(f"{len(counts)} guides not repaired: {middle:g} questions (median), {max(counts)} (worst)")
        print("asked by: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))


if __name__ == "__main__":
    sys.exit(main())
