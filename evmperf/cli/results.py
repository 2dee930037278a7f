"""`evmperf runs`, `show`, `report` and `explain`: the runs that exist, one run, what two differ in."""

import argparse
import dataclasses
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evmperf.app import sources, why
from evmperf.cli import arguments
from evmperf.model.errors import UsageError
from evmperf.published.baseline import of_board
from evmperf.published.releases import BASELINES
from evmperf.report import differences as report
from evmperf.report.columns import Column, table
from evmperf.report.table import text_table
from evmperf.runs import differences, spool
from evmperf.runs.history import GUIDE, StoredRun, run_folder

_RUNS = """\
Lists runs, the newest last: of the folder of results and the lab's store, or of a folder, InfluxDB
(--from influx), the store alone (--from history), or the published guides (--from baselines).
"""
_SHOW = """\
Shows the results of a run, the facts they were measured under, and what failed. The run may still
be at work.
"""
_REPORT = """\
Writes report.html of a run from the files of the run. A run that is at work or was killed has a
report, too.
"""
_EXPLAIN = """\
Says what differs between two runs in everything known about them: options, image, kernel, command
line, device tree by node, kernel configuration, modules, kernel messages, U-Boot, CPU frequency,
mitigations, tools, media; sorted by what is likely to matter. With several runs a side, only what
holds for all runs of a side. The exit status is 0 whether anything differs or not.
"""
_PIPED = 160
"""Characters of a line that goes to a file or another program."""


def add_parsers(commands: Any) -> None:
    """Add the four commands."""
    runs = arguments.command(commands, "runs", _runs, _RUNS, "--results")
    arguments.add_from(runs)
    text = "only runs of this board (name or file)"
    runs.add_argument("--board", type=arguments.board_name, help=text)
    runs.add_argument("--last", type=int, default=20, metavar="N", help="how many (default: 20)")
    show = arguments.command(commands, "show", _show, _SHOW)
    arguments.add_run(show)
    show.add_argument("--facts", action="store_true", help="everything known about the board")
    arguments.add_run(arguments.command(commands, "report", _report, _REPORT))
    explain = arguments.command(commands, "explain", _explain, _EXPLAIN, "--json", "--results")
    explain.add_argument("a", metavar="A", nargs="?", help=arguments.A_RUN)
    explain.add_argument("b", metavar="B", nargs="?", help="another run")
    for side in "ab":
        text = f"runs of side {side.upper()}"
        explain.add_argument(
            f"--{side}", dest=f"more_{side}", metavar="RUN", nargs="+", default=[], help=text
        )
    explain.add_argument("--all", action="store_true", help="every line, however many")


def _runs(options: argparse.Namespace) -> int:
    named = (None, sources.INFLUX, sources.HISTORY, sources.PUBLISHED, "baselines")
    if options.source not in named and not Path(options.source).is_dir():
        raise UsageError(
            f"{options.source}: there is no such folder of runs; measure with "
            f"pytest --lg-env BOARD.yaml, or say --from FOLDER"
        )
    with sources.earlier(options.source, options.results) as source:
        runs = source.everything()
    mine = [entry for entry in runs if options.board in (None, entry.run.board)]
    if not mine:
        known = ", ".join(sorted({entry.run.board for entry in runs})) or "none"
        whose = f" of {options.board}" if options.board else ""
        raise UsageError(f"{source}: has no runs{whose}; boards with runs: {known}")
    columns = (
        Column("run"),
        Column("began (UTC)", drop=2),
        Column("kind", drop=3),
        Column("release", drop=1),
        Column("profile", drop=4),
        Column("outcome", wrap=True),
    )
    width = None if sys.stdout.isatty() else _PIPED
    print(table(columns, [_row(entry) for entry in mine[-options.last :]], width), end="")
    return 0


def _row(entry: StoredRun) -> tuple[str, ...]:
    run = entry.run
    began = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    return (
        run.id,
        f"{began:%Y-%m-%d %H:%M}" if run.started_ns else "-",
        run.kind,
        run.release or "-",
        run.profile,
        run.outcome
        or ("at work" if entry.folder and spool.is_live(entry.folder) else "not ended, or killed"),
    )


def _show(options: argparse.Namespace) -> int:
    folder = run_folder(options.run, options.results)
    run = spool.read_run(folder)
    results = spool.read_results(folder)
    print(f"{run.id}: {run.board}, profile {run.profile}, {run.os or 'operating system unknown'}")
    print(f"release {run.release or 'unknown'}, kernel {run.facts.get('kernel', 'unknown')}")
    unknown = "is at work" if spool.is_live(folder) else "has not ended, or was killed"
    print(f"{run.outcome or f'This run {unknown}.'}\n")
    if results:
        baseline = of_board(run) if run.kind != GUIDE else None
        width = None if sys.stdout.isatty() else 140 if baseline else 120
        print(text_table(results, width, baseline), end="")
    for result in results:
        for failure in result.failures:
            what = "refused" if failure.refused else "failed"
            print(
                f"{result.benchmark} {result.case} {failure.step}: {what} ({failure.kind}): "
                f"{failure.message}{f' [{failure.raw}]' if failure.raw else ''}"
            )
    if options.facts:
        print(json.dumps(run.facts, indent=1, sort_keys=True))
    return 0


def _report(options: argparse.Namespace) -> int:
    print(why.report(run_folder(options.run, options.results)))
    return 0


def _explain(options: argparse.Namespace) -> int:
    sides = [
        [run_folder(given, options.results, BASELINES) for given in (*([one] if one else []), *more)]
        for one, more in ((options.a, options.more_a), (options.b, options.more_b))
    ]
    if not all(sides):
        raise UsageError("explain takes two sides: evmperf explain A B, or --a RUN... --b RUN...")
    found = differences.between(*sides)
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in found], indent=1))
    else:
        print(report.text(found, everything=options.all), end="")
    return 0
