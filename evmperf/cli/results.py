"""`evmperf runs`, `show`, `report` and `history`: the runs, one run, one figure."""

import argparse
import difflib
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

from evmperf.app import sources, why
from evmperf.benchmarks import catalogue
from evmperf.cli.arguments import command
from evmperf.cli.terminal import width
from evmperf.model.errors import UsageError
from evmperf.model.stats import rounded
from evmperf.published import source as published
from evmperf.report.columns import Column, sparkline, table
from evmperf.report.table import text_table
from evmperf.runs import spool
from evmperf.runs.history import GUIDE, Measured, RunSource, StoredRun, measured, run_folder


@command("runs")
def _runs(options: argparse.Namespace) -> None:
    named = ("", sources.INFLUX, sources.HISTORY, sources.PUBLISHED, "baselines")
    if options.source not in named and not Path(options.source).is_dir():
        raise UsageError(
            f"{options.source}: no such folder of runs; measure with "
            f"pytest --lg-env BOARD.yaml, or give --from FOLDER"
        )
    with sources.opened(options.source, options.results) as source:
        runs = source.runs()
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
    print(table(columns, [_row(entry) for entry in mine[-options.last :]], width()), end="")


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


@command("show")
def _show(options: argparse.Namespace) -> None:
    folder = run_folder(options.run, options.results)
    run = spool.read_run(folder)
    results = spool.read_results(folder)
    print(f"{run.id}: {run.board}, profile {run.profile}, {run.os or 'operating system unknown'}")
    print(f"release {run.release or 'unknown'}, kernel {run.facts.kernel or 'unknown'}")
    unknown = "is at work" if spool.is_live(folder) else "has not ended, or was killed"
    print(f"{run.outcome or f'This run {unknown}.'}\n")
    if results:
        baseline = published.baseline(run) if run.kind != GUIDE else None
        print(text_table(results, width(140 if baseline else 120), baseline), end="")
    for result in results:
        for failure in result.failures:
            what = "refused" if failure.refused else "failed"
            print(
                f"{result.benchmark} {result.case} {failure.step}: {what} ({failure.kind}): "
                f"{failure.message}{f' [{failure.raw}]' if failure.raw else ''}"
            )
    if options.facts:
        print(json.dumps(run.facts.to_dict(), indent=1, sort_keys=True))


@command("report")
def _report(options: argparse.Namespace) -> None:
    print(why.report(run_folder(options.run, options.results)))


@command("history")
def _history(options: argparse.Namespace) -> None:
    options.source = sources.PUBLISHED if options.published else options.source
    with sources.opened(options.source, options.results) as source:
        if not options.benchmark:
            _measured(source, options.board, options.last)
            return
        benchmark = catalogue.benchmark(options.benchmark)
        there = measured(source.runs(options.board)[-options.last :], benchmark.name, options.case)
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
        _print_figures(f"{options.board} {benchmark.name} {metric}, from {source}", figures)


def _measured(source: RunSource, board: str, last: int) -> None:
    """List the metrics of a board's last runs, each with the number of its cases and runs."""
    runs = source.runs(board)[-last:]
    if not runs:
        boards = sorted({entry.run.board for entry in source.runs()})
        near = difflib.get_close_matches(board, boards, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        known = ", ".join(boards) or "none"
        raise UsageError(f"{source}: has no runs of {board!r}.{hint} Boards with runs: {known}.")
    cases: dict[tuple[str, str], set[str]] = defaultdict(set)
    seen: Counter[tuple[str, str]] = Counter()
    for entry in runs:
        rows = {(r.benchmark, sample.metric, r.case) for r in entry.results() for sample in r.samples}
        for benchmark, metric, case in rows:
            cases[benchmark, metric].add(case)
        seen.update({row[:2] for row in rows})
    print(f"{board}: measured in the last {len(runs)} runs, from {source}")
    for key in sorted(cases):
        print(f"  {' '.join(key)}: {len(cases[key])} cases in {seen[key]} runs")


def _print_figures(heading: str, found: list[Measured]) -> None:
    print(heading)
    by_case: dict[str, list[Measured]] = defaultdict(list)
    for figure in found:
        by_case[figure.case].append(figure)
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
