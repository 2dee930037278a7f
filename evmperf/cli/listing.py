"""`evmperf list` and `evmperf show`: benchmarks, and the table of a run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards.board import Board
from evmperf.cli import arguments
from evmperf.measure import boardfile
from evmperf.published import declared
from evmperf.published.baseline import of_board
from evmperf.report.table import text_table
from evmperf.runs import spool
from evmperf.runs.history import GUIDE, run_folder


def add_parsers(commands: Any) -> None:
    """Add both commands."""
    _add_list(commands)
    _add_show(commands)


def _add_list(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        description="List the benchmarks of the catalogue; with a board, say which of them "
        "it can run, and the skip reason of the others. Tables of published guides that no "
        "benchmark measures follow, with the reason.",
    )
    parser.add_argument("--board", help="a board file, as for pytest --lg-env")
    parser.add_argument("--profile", choices=("full", "quick"), help="default: the board's, or full")
    parser.add_argument("--json", action="store_true", help="a list of objects, for programs")
    parser.set_defaults(func=_list)


def _list(options: argparse.Namespace) -> int:
    board = boardfile.named(options.board) if options.board else None
    profile = options.profile or (board.options.board.profile if board else "full")
    rows = [_entry(benchmark, profile, board) for benchmark in catalogue.benchmarks().values()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    width, drivers = (max((len(row[key]) for row in rows), default=0) for key in ("id", "driver"))
    for row in rows:
        reason = f"  cannot: {row['reason']}" if row.get("reason") else ""
        count = f"{len(row['cases']):>3} {'case' if len(row['cases']) == 1 else 'cases'}"
        line = f"{row['id']:<{width}}  {row['driver']:<{drivers}}  {count:<9}{reason}"
        print(line.rstrip())
    _print_not_measured()
    return 0


def _print_not_measured() -> None:
    tables = [table for table in declared.tables().values() if not table.module]
    width, drivers = (max(len(t.benchmark) for t in tables), max(len(t.driver) for t in tables))
    print("\nRead from published guides, and not measured:")
    for table in tables:
        print(f"{table.benchmark:<{width}}  {table.driver:<{drivers}}  {table.not_measured}".rstrip())


def _entry(benchmark: Benchmark, profile: str, board: Board | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": benchmark.name,
        "driver": benchmark.driver,
        "title": benchmark.title,
        "cases": [case.label for case in benchmark.cases(profile)],
    }
    if board is not None:
        reasons = {c.label: benchmark.unsupported(board, c) for c in benchmark.cases(profile)}
        entry["cases"] = [label for label, reason in reasons.items() if not reason] or list(reasons)
        reason = "" if "" in reasons.values() else next(iter(reasons.values()), "")
        entry |= {"runnable": not reason, "reason": reason}
    return entry


def _add_show(commands: Any) -> None:
    parser = commands.add_parser(
        "show",
        description="Show the results of a run, the facts they were measured under, and what "
        "failed. The run may still be going on.",
    )
    arguments.add_run(parser)
    parser.add_argument("--facts", action="store_true", help="everything known about the board")
    parser.set_defaults(func=_show)


def _show(options: argparse.Namespace) -> int:
    folder = run_folder(options.run, options.results)
    run = spool.read_run(folder)
    results = spool.read_results(folder)
    print(f"{run.id}: {run.board}, profile {run.profile}, {run.os or 'operating system unknown'}")
    print(f"release {run.release or 'unknown'}, kernel {run.facts.get('kernel', 'unknown')}")
    print(f"{run.outcome or 'This run has not ended, or was killed.'}\n")
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
