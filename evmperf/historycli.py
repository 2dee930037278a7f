"""`evmperf history`: how one figure went over the last runs."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evmperf.errors import UsageError
from evmperf.history import RecordedRun, RunSource, SpoolFolder
from evmperf.spool import Run
from evmperf.stats import Summary, rounded, summarise

_BARS = "▁▂▃▄▅▆▇█"


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
    from evmperf import catalogue  # noqa: PLC0415

    benchmark = catalogue.benchmark(options.benchmark).name
    with _source(options.results) as source:
        runs = source.runs(options.board, options.last, benchmark)
        if not runs:
            raise UsageError(f"{source}: holds no run of {options.board!r}")
        rows = figures(runs, options.metric, options.case)
    if not rows:
        seen = sorted({s.metric for r in runs for result in r.results for s in result.samples})
        raise UsageError(
            f"{source}: the last {len(runs)} runs of {options.board} have no {options.metric} of "
            f"{benchmark}{f' {options.case}' if options.case else ''}; "
            f"they have {', '.join(seen) or 'nothing of it'}"
        )
    print(f"{options.board} {benchmark} {options.metric}, from {source}")
    for case, points in rows.items():
        print(f"\n{case}  {sparkline([summary.mean for _, summary, _ in points])}")
        for run, summary, unit in points:
            print(_line(run, summary, unit))
    return 0


@contextlib.contextmanager
def _source(results: Path | None) -> Iterator[RunSource]:
    """InfluxDB where one is configured and no folder is named, else the folder."""
    from evmperf.influx import config as configs  # noqa: PLC0415  # slow to import

    config = configs.load() if results is None else None
    if config is None:
        yield SpoolFolder(results or Path("results"))
        return
    from evmperf.influx.client import Store  # noqa: PLC0415
    from evmperf.influx.reader import InfluxRuns  # noqa: PLC0415

    with Store(config) as store:
        yield InfluxRuns(store)


Point = tuple[Run, Summary, str]
"""A run, what its samples say together, and their unit."""


def figures(
    runs: Sequence[RecordedRun], metric: str, case: str | None = None
) -> dict[str, list[Point]]:
    """The metric's summaries by case, each over the runs from the oldest on."""
    found: dict[str, list[Point]] = {}
    for recorded in reversed(runs):
        for result in recorded.results:
            samples = [sample for sample in result.samples if sample.metric == metric]
            if samples and case in (None, result.case):
                summary = summarise([sample.value for sample in samples])
                found.setdefault(result.case, []).append((recorded.run, summary, samples[0].unit))
    return found


def sparkline(values: Sequence[float]) -> str:
    """Values as bars between their smallest and largest."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[round((value - low) / span * top)] for value in values)


def _line(run: Run, summary: Summary, unit: str) -> str:
    day = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    return (
        f"  {day:%Y-%m-%d %H:%M}  {run.release or '-':<16} {run.profile:<5} "
        f"{rounded(summary.mean):>12} {unit:<5} "
        f"(min {rounded(summary.low)}, max {rounded(summary.high)}, n {summary.count})"
    )
