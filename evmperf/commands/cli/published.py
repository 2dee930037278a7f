"""`evmperf published`: TI's figures from evmperf's record; imports nothing else, to answer at once."""

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from evmperf.commands.cli.arguments import argument, command, either
from evmperf.judge.published import identity, record
from evmperf.judge.published.record import Entry, Value
from evmperf.measure.state import buses
from evmperf.model import plugins
from evmperf.model.errors import UsageError
from evmperf.model.places import project


@command(
    "published",
    argument("board", nargs="?", default="", help="a board of any name that guides use, or a file in env/"),
    argument("--case", default="", metavar="WORDS", help='e.g. "emmc_ext4 100 KiB write"'),
    argument("--os", default="", help="Linux, RT-linux or `bare metal` (default: all)"),
    argument("--impossible", action="store_true", help="figures above the hardware's limit, of all boards"),
    either(
        argument("--csv", action="store_true", help="one line per figure"),
        argument("--json", action="store_true", help="one object per figure"),
    ),
)
def _published(options: argparse.Namespace) -> None:
    """Figures of TI's performance guides from the record that comes with evmperf, and of the data sheets of
    its MCU+ SDK (bare metal) where guide-reader is installed: without a board the list of boards, with one
    its releases, with --case one figure over all releases.
    """
    if not record.entries():
        raise UsageError(f"{record.FILE}: is missing: this evmperf was installed without a record")
    if options.case and not options.board:
        raise UsageError("--case needs a board: evmperf published BOARD --case WORDS")
    mine = _of(_named(options.board), options.os) if options.board else record.entries()
    if not mine:
        raise _no_board(options.board, options.os)
    if options.impossible:
        if rows := list(_impossible(mine)):
            _rows(options, rows)
        return
    if not options.board:
        _rows(options, _boards())
        return
    if not options.case:
        _rows(options, [_release(entry) for entry in mine])
        return
    figures = record.search(mine, options.case)
    if not figures:
        raise _no_case(mine, options.case)
    if options.csv or options.json:
        _rows(options, [_figure(key, *one) for key, series in figures.items() for one in series])
        return
    for (os, benchmark, case, metric), series in figures.items():
        words = record.size(case) or case
        print(f"{mine[0].board} {os} {benchmark} {words} {metric} ({series[0][1].unit}):")
        print("  " + ", ".join(f"{_said(entry)} {value.mean:g}" for entry, value in series))


def _named(given: str) -> str:
    if re.fullmatch(r"[\w.-]+", given):
        file = project("env") / f"{given.removesuffix('.yaml')}.yaml"
        if file.is_file() and (name := re.search(r"board:\s+name: (\S+)", file.read_text())):
            return identity.board(name[1])
    return identity.of_module(given) or given


def _of(board: str, os: str = "") -> list[Entry]:
    """What the guides have of a board, then what the data sheets have, where guide-reader brings these."""
    sheets = plugins.of_guides("sheets")
    return [*record.of_board(board, os), *(record.of_board(board, os, sheets) if sheets else ())]


def _no_board(given: str, os: str) -> UsageError:
    if systems := {entry.os for entry in _of(_named(given))}:
        return UsageError(
            f"no published figures of {given} on {os!r}, only on {' and '.join(sorted(systems))}"
        )
    boards = sorted({entry.board for entry in record.entries()})
    near = [board for board in boards if identity.plain(board).startswith(identity.plain(given) or "-")]
    if near:
        return UsageError(f"no published figures of {given!r}; is it {' or '.join(near)}?")
    return UsageError(f"no published figures of {given!r}; known boards: {', '.join(boards)}")


def _no_case(mine: Sequence[Entry], words: str) -> UsageError:
    """The benchmarks of a board, or the cases and metrics of the one that is named."""
    published_cases = [case for entry in mine for case in entry.cases]
    named = [case for case in published_cases if case.benchmark in words.lower().split()]
    cases = {record.size(case.name) or case.name: None for case in named}
    metrics = {value.metric: None for case in named for value in case.values}
    names = [*cases, *metrics] or sorted({case.benchmark for case in published_cases})
    whose = named[0].benchmark if named else "it"
    return UsageError(f"no figure of {mine[0].board} is called {words!r}; {whose} has {', '.join(names)}")


def _said(entry: Entry) -> str:
    return f"{entry.release}{' (from its date)' if entry.dated else ''}"


def _boards() -> list[dict[str, object]]:
    rows = []
    for board, entries in sorted(record.boards(record.entries()).items()):
        ordered = sorted(entries, key=lambda entry: entry.place)
        count = sum(entry.count for entry in entries)
        releases = len({(e.os, record.same_time(e.release)) for e in entries})
        first, last = ordered[0].release, ordered[-1].release
        rows.append({"board": board, "releases": releases, "first": first, "last": last, "figures": count})
    return rows


def _release(entry: Entry) -> dict[str, object]:
    columns = {"release": entry.release, "from_date": entry.dated, "os": entry.os, "date": entry.date}
    return {**columns, "figures": entry.count, "named": entry.printed, "guide": entry.guide}


def _impossible(entries: Iterable[Entry]) -> Iterator[dict[str, object]]:
    """The figures above the limits of `evmperf.measure.state.buses`, and why."""
    for entry in entries:
        for case, value in record.values(entry):
            row = (case.benchmark, case.name, value.metric)
            if why := buses.impossible(*row, unit=value.unit, mean=value.mean, board=entry.board):
                where = {"board": entry.board, "release": _said(entry)}
                figure = dict(zip(("benchmark", "case", "metric"), row, strict=True))
                yield where | figure | {"why": why, "guide": entry.guide, "line": value.line}


def _figure(key: tuple[str, ...], entry: Entry, value: Value) -> dict[str, object]:
    where = {"board": entry.board, "os": entry.os, "release": entry.release, "from_date": entry.dated}
    figure = {name: getattr(value, name) for name in ("metric", "unit", "mean", "low", "high")}
    return where | {"benchmark": key[1], "case": key[2]} | figure | {"guide": entry.guide, "line": value.line}


def _rows(options: argparse.Namespace, rows: Sequence[dict[str, object]]) -> None:
    if options.json:
        print(json.dumps(rows))
        return
    if options.csv:
        writer = csv.DictWriter(sys.stdout, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    texts = [list(rows[0]), *([_text(v) for v in row.values()] for row in rows)]
    widths = [max(len(row[n]) for row in texts) for n in range(len(texts[0]))]
    for row in texts:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)
