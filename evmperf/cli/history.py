"""`evmperf history`: how one figure went over the last runs."""

import argparse
import difflib
from datetime import UTC, datetime

from evmperf.app import sources
from evmperf.benchmarks import catalogue
from evmperf.cli.arguments import RESULTS, SOURCE, arg, command, flag
from evmperf.model.errors import UsageError
from evmperf.model.stats import rounded
from evmperf.report.sparkline import sparkline
from evmperf.runs.history import Measured, RunSource, measured


@command(
    "history",
    "Show one metric of one benchmark on one board over the last runs.",
    arg("board", "the board's name, as in its file"),
    arg("benchmark?", "`evmperf list` names them (default: list what was measured)"),
    arg("metric?", "e.g. write_throughput (default: all of the benchmark)"),
    arg("--case", "one row of the benchmark (default: all)"),
    arg("--last", "runs (default: 20)", type=int, default=20, metavar="N"),
    RESULTS,
    SOURCE,
    flag("--published", "of TI's published figures, over their releases"),
)
def _history(options: argparse.Namespace) -> None:
    options.source = sources.PUBLISHED if options.published else options.source
    with sources.earlier(options.source, options.results) as source:
        if not options.benchmark:
            _measured(source, options.board, options.last)
            return
        benchmark = catalogue.benchmark(options.benchmark)
        there = measured(source.runs(options.board, options.last), benchmark.name, options.case)
    metrics = [options.metric] if options.metric else [m.name for m in benchmark.metrics]
    found = {metric: there[metric] for metric in metrics if metric in there}
    if not found:
        case = f" {options.case}" if options.case else ""
        raise UsageError(
            f"{source}: the last {options.last} runs of {options.board!r} have no "
            f"{options.metric or 'figures'} of {benchmark.name}{case}; "
            f"`evmperf history {options.board}` lists what was measured"
        )
    for metric, figures in found.items():
        _show(f"{options.board} {benchmark.name} {metric}, from {source}", figures)


def _measured(source: RunSource, board: str, last: int) -> None:
    """List the metrics of a board's last runs, each with the number of its cases and runs."""
    runs = source.runs(board, last)
    if not runs:
        boards = sorted({entry.run.board for entry in source.everything()})
        near = difflib.get_close_matches(board, boards, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        known = ", ".join(boards) or "none"
        raise UsageError(f"{source}: has no runs of {board!r}.{hint} Boards with runs: {known}.")
    cases: dict[tuple[str, str], set[str]] = {}
    seen: dict[tuple[str, str], int] = {}
    for entry in runs:
        there = set()
        for result in entry.results():
            for sample in result.samples:
                there.add((result.benchmark, sample.metric))
                cases.setdefault((result.benchmark, sample.metric), set()).add(result.case)
        for key in there:
            seen[key] = seen.get(key, 0) + 1
    print(f"{board}: measured in the last {len(runs)} runs, from {source}")
    for benchmark, metric in sorted(cases):
        key = (benchmark, metric)
        print(f"  {benchmark} {metric}: {len(cases[key])} cases in {seen[key]} runs")


def _show(heading: str, found: list[Measured]) -> None:
    print(heading)
    by_case: dict[str, list[Measured]] = {}
    for figure in found:
        by_case.setdefault(figure.case, []).append(figure)
    for case, figures in by_case.items():
        print(f"\n{case}  {sparkline([figure.summary.mean for figure in figures])}")
        for figure in figures:
            print(_line(figure))


def _line(figure: Measured) -> str:
    run, summary = figure.run, figure.summary
    day = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    return (
        f"  {day:%Y-%m-%d %H:%M}  {run.release or '-':<16} {run.profile:<5} "
        f"{rounded(summary.mean):>12} {figure.unit:<5} "
        f"(min {rounded(summary.low)}, max {rounded(summary.high)}, n {summary.count})"
    )
