"""Write the figures of published guides (.rst, .txt) or of data sheets of the MCU+ SDK (.md) into one record.

There are two records: baselines/record.zst of the guides, which evmperf reads, and
guide-reader/evmperf_guides/datasheets.zst of the sheets. Each is written anew of all its files; without a
file the doubts of the record that is there are found anew. What was not read is named by line.
"""

import sys
from pathlib import Path

import msgspec
from backports import zstd
from evmperf_guides import artefacts, importer
from evmperf_guides.source import UNKNOWN_OS
from msgspec import structs
from msgspec.structs import astuple

from evmperf.judge.published import identity, record, scatter, source
from evmperf.judge.published.record import Entry, PublishedCase, Value, date_in
from evmperf.model.figures import figures
from evmperf.model.run import Run
from selftests.instruments import command, sheet


def entry_of(run, results):
    """The entry that an imported guide's run makes: its tables one after the other."""
    found = list(results)
    tables = list(dict.fromkeys(result.benchmark for result in found))
    found.sort(key=lambda result: tables.index(result.benchmark))
    cases = msgspec.Raw(msgspec.msgpack.encode([_case(result) for result in found]))
    facts, guide = run.facts, run.facts.guide
    where = (identity.board(run.board), run.board, run.os, run.release, date_in(guide))
    return Entry(*where, bool(facts.release_from), guide, facts.guide_sha256, cases)


def _case(result):
    values = tuple(Value(*astuple(published)) for published in result.published)
    words = {name: str(text) for name, text in result.conditions.items()}
    tool = next(iter(result.tools), "")
    return PublishedCase(result.benchmark, result.driver, tool, result.case, values, words)


def doubted(entries):
    """The entries with why figures are not judged: by others of their guide, then by the other releases
    of the board, among which figures that their own guide doubts do not count.
    """
    own = [_noted(entry, lambda run, found: artefacts.doubts(found, run.board)) for entry in entries]
    boards = {}
    for entry in own:
        boards.setdefault((entry.board, entry.os), []).append(entry)
    series = {
        board: scatter.of_entries(sorted(mine, key=lambda e: e.place), doubtful=False)
        for board, mine in boards.items()
    }
    return [
        _noted(e, lambda run, of: artefacts.doubts(of, run.board, series[run.board, run.os], run.release))
        for e in own
    ]


def _noted(entry, doubts):
    run = Run(entry.guide, entry.board, "full", release=entry.release, os=entry.os)
    results = source.results([entry], samples=False)
    reasons = doubts(run, figures(results))
    cases = [_case(importer.doubted(result, reasons)) for result in results]
    return structs.replace(entry, packed=msgspec.Raw(msgspec.msgpack.encode(cases)))


def settled(entries):
    """The entries; one whose guide names no operating system has that of all its board's others."""
    known = {}
    for entry in entries:
        if entry.os != UNKNOWN_OS:
            known.setdefault(entry.board, set()).add(entry.os)
    lone = {board: systems.pop() for board, systems in known.items() if len(systems) == 1}
    return [structs.replace(e, os=lone.get(e.board, e.os)) if e.os == UNKNOWN_OS else e for e in entries]


def write(file, entries):
    """Write a record; of the same entries always the same file."""
    ordered = sorted(doubted(settled(list(entries))), key=lambda e: (e.board, e.os, e.place, e.guide))
    file.write_bytes(zstd.compress(msgspec.msgpack.encode(ordered), 19))


def entries(file):
    """The entries of a guide or sheet; what was not read goes to standard error."""
    if file.suffix == ".md":
        read = sheet.load(file)
        problems, found = read.problems, read.entries()
    else:
        problems, found = [], []
        for imported in importer.load(file):
            problems += imported.problems
            found += [entry_of(importer.run_of(imported, b), r) for b, r in imported.results.items()]
    for problem in problems:
        print(f"{file} line {problem.line}: {problem.reason}", file=sys.stderr)
    return found


def main(words=None):
    """Write the record that the user asks for."""
    asked = command.parser(__spec__.name if __spec__ else __name__, __doc__)
    asked.add_argument("record", type=Path, metavar="RECORD", help="the file to write")
    asked.add_argument("files", type=Path, nargs="*", metavar="FILE", help="guides, or data sheets")
    given = asked.parse_args(words)
    found = [entry for file in given.files for entry in entries(file)] or record.entries(given.record)
    write(given.record, found)
    print(f"{given.record}: {sum(entry.count for entry in found)} figures")


if __name__ == "__main__":
    main()
