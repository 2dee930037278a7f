"""`evmperf history`: how one figure went over the last runs."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evmperf.model.errors import UsageError
from evmperf.model.stats import rounded
from evmperf.report.sparkline import sparkline
from evmperf.runs.history import Measured


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "history",
        help="how a figure went over the last runs",
        description="Show one metric of one benchmark on one board over the last runs, from "
        "InfluxDB where one is named (see `evmperf push --help`), else from a folder of runs.",
    )
    parser.add_argument("board", help="the board's name, as in its file")
    parser.add_argument("benchmark", help="`evmperf list` names them")
    parser.add_argument("metric", help="e.g. write_throughput")
    parser.add_argument("--case", help="one row of the benchmark (default: all)")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="runs (default: 20)")
    parser.add_argument(
        "--results", type=Path, help="read this folder of runs, whether InfluxDB is there or not"
    )
    parser.set_defaults(func=_history)


def _history(options: argparse.Namespace) -> int:
    from evmperf.benchmarks import catalogue  # noqa: PLC0415
    from evmperf.cli import sources  # noqa: PLC0415
    from evmperf.influx import config  # noqa: PLC0415

    benchmark = catalogue.benchmark(options.benchmark).name
    named = sources.INFLUX if options.results is None and config.load() else "results"
    with sources.opened(str(options.results or named)) as source:
        found = source.figures(
            options.board, benchmark, options.metric, options.last, options.case or ""
        )
    if not found:
        case = f" {options.case}" if options.case else ""
        raise UsageError(
            f"{source}: the last {options.last} runs of {options.board!r} have no "
            f"{options.metric} of {benchmark}{case}; `evmperf list` names the benchmarks, "
            f"`evmperf show` what a run has"
        )
    print(f"{options.board} {benchmark} {options.metric}, from {source}")
    by_case: dict[str, list[Measured]] = {}
    for figure in found:
        by_case.setdefault(figure.case, []).append(figure)
    for case, figures in by_case.items():
        print(f"\n{case}  {sparkline([figure.summary.mean for figure in figures])}")
        for figure in figures:
            print(_line(figure))
    return 0


def _line(figure: Measured) -> str:
    run, summary = figure.run, figure.summary
    day = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    return (
        f"  {day:%Y-%m-%d %H:%M}  {run.release or '-':<16} {run.profile:<5} "
        f"{rounded(summary.mean):>12} {figure.unit:<5} "
        f"(min {rounded(summary.low)}, max {rounded(summary.high)}, n {summary.count})"
    )
