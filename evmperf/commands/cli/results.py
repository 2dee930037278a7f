"""`evmperf show` and `history`: one run; the runs, and one figure over them."""

import argparse
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

from evmperf.benchmarks import catalogue, wording
from evmperf.commands.app import sources
from evmperf.commands.cli.arguments import RESULTS, RUN, SOURCE, argument, board_name, command, count
from evmperf.commands.cli.terminal import width
from evmperf.judge.nights import Past, nights
from evmperf.judge.published import source as published
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import GUIDE, RunSource, StoredRun, run_folder
from evmperf.model.errors import UsageError, meant
from evmperf.model.run import Run
from evmperf.model.stats import summarise
from evmperf.model.units import counted
from evmperf.publish.pages import look
from evmperf.publish.report import picture
from evmperf.publish.report.columns import Column, sparkline, table
from evmperf.publish.report.shape import text_table
from evmperf.publish.report.summary import headlines

_COLUMNS = (
    Column("run"),
    Column("began (UTC)", drop=2),
    Column("kind", drop=3),
    Column("release", drop=1),
    Column("profile", drop=4),
    Column("outcome", wrap=True),
)


def _row(entry: StoredRun) -> tuple[str, ...]:
    run = entry.run
    return (
        run.id,
        _day(run) if run.started_ns else "-",
        run.kind,
        run.release or "-",
        run.profile,
        run.outcome
        or ("at work" if entry.folder and spool.is_live(entry.folder) else "not ended, or killed"),
    )


@command(
    "show",
    RUN,
    RESULTS,
    argument("--facts", action="store_true", help="everything known about the board"),
    argument("--report", action="store_true", help="write its report.html again instead"),
    argument("--png", type=Path, metavar="FILE", help="draw its boots into this picture instead"),
    argument("--beside", default="", metavar="RUN", help="the boots of this run on the same scale"),
)
def _show(options: argparse.Namespace) -> None:
    """Shows the results of a run, the facts they were measured under, and what failed. The run may still
    be at work, or may have been killed.
    """
    folder = run_folder(options.run, options.results)
    if options.report or options.png or options.beside:
        _draw(options, folder)
        return
    run = spool.read_run(folder)
    results = spool.read_results(folder)
    shown = ""
    if results:
        baseline = published.baseline(run) if run.kind != GUIDE else None
        shown = text_table(results, width(140 if baseline else 120), baseline)
        first = headlines(results, baseline, spool.read_verdicts(folder))
        rows = [(one.area, one.figure, one.name, "; ".join(map(str, one.changes))) for one in first]
        columns = (Column(""), Column("", right=True), Column("", drop=2), Column("", wrap=True, drop=1))
        shown = f"{table(columns, rows, width()).lstrip()}\n{shown}" if first else shown
    live = spool.is_live(folder)
    print(look.render("commands/cli/show.txt.j2", run=run, results=results, live=live, table=shown), end="")
    if options.facts:
        print(json.dumps(run.facts.to_dict(), indent=1, sort_keys=True))


def _draw(options: argparse.Namespace, folder: Path) -> None:
    from evmperf.commands.app import why  # noqa: PLC0415  # numpy is slow to import

    beside = run_folder(options.beside, options.results) if options.beside else None
    if options.png:
        picture.write(options.png, folder, beside)
    print(options.png or why.report(folder, beside))


@command(
    "history",
    argument(
        "board", nargs="?", type=board_name, help="its name, or its file (default: the runs of all boards)"
    ),
    argument(
        "benchmark",
        nargs="?",
        default="",
        help="`evmperf benchmark list` names them (default: the board's runs, and what was measured)",
    ),
    argument("metric", nargs="?", default="", help="e.g. write_throughput (default: all of the benchmark)"),
    argument("--case", default="", help="one row of the benchmark (default: all)"),
    argument("--last", type=count, default=20, metavar="N", help="runs (default: %(default)s)"),
    RESULTS,
    SOURCE,
)
def _history(options: argparse.Namespace) -> None:
    """Shows one metric of one benchmark on one board over the last runs, the newest last; without a
    benchmark, the runs themselves.
    """
    with sources.opened(options.source, options.results) as source:
        if not options.benchmark:
            _listed(source, options.board, options.last)
            return
        name = options.benchmark
        case = wording.label(name, options.case)
        by_metric: dict[str, dict[str, list[tuple[Run, Past]]]] = {}
        for night in nights(source.runs(options.board)[-options.last :]):
            for key, past in night.figures.items():
                if key.benchmark == name and case in ("", key.case):
                    cases = by_metric.setdefault(key.metric, defaultdict(list))
                    cases[wording.case(name, key.case)].append((night.run, past))
    known = catalogue.benchmarks().get(name)
    if not (known or by_metric):
        catalogue.benchmark(name)  # raises, with the nearest names
    metrics = [options.metric] if options.metric else [m.name for m in known.metrics] if known else by_metric
    figures_of = {metric: by_metric[metric] for metric in metrics if metric in by_metric}
    if not figures_of:
        case = f" {options.case}" if options.case else ""
        raise UsageError(
            f"{source}: the last {options.last} runs of {options.board!r} have no "
            f"{options.metric or 'figures'} of {name}{case}; "
            f"`evmperf history {options.board}` lists what was measured"
        )
    for metric, cases in figures_of.items():
        heading = f"{options.board} {name} {metric}, from {source}"
        shown = {"day": _day, "sparkline": sparkline, "summarise": summarise}
        print(look.render("commands/cli/history.txt.j2", heading=heading, cases=cases, **shown), end="")


def _day(run: Run) -> str:
    return f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d %H:%M}"


def _listed(source: RunSource, board: str | None, last: int) -> None:
    """List the last runs, of one board with its metrics: each with the number of its cases and runs."""
    runs = source.runs(board)[-last:]
    if not runs:
        boards = sorted({entry.run.board for entry in source.runs()}) if board else []
        whose = f" of {board!r}{meant(board, boards)}" if board else ""
        remedy = "Measure with pytest --lg-env BOARD.yaml, or give --from FOLDER."
        rest = f"Boards with runs: {', '.join(boards)}." if boards else remedy
        raise UsageError(f"{source}: has no runs{whose}. {rest}")
    print(table(_COLUMNS, [_row(entry) for entry in runs], width()), end="")
    if not board:
        return
    cases: dict[tuple[str, str], set[str]] = defaultdict(set)
    seen: Counter[tuple[str, str]] = Counter()
    for night in nights(runs):
        for key in night.figures:
            cases[key.benchmark, key.metric].add(key.case)
        seen.update({(key.benchmark, key.metric) for key in night.figures})
    print(f"{board}: measured in the last {counted(len(runs), 'run')}, from {source}")
    for what in sorted(cases):
        print(f"  {' '.join(what)}: {counted(len(cases[what]), 'case')} in {counted(seen[what], 'run')}")
