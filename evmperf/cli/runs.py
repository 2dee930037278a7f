"""`evmperf runs`: which runs there are."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evmperf.cli import arguments, sources
from evmperf.model.errors import UsageError
from evmperf.model.run import Run
from evmperf.report.columns import Column, table

_PIPED = 160
"""Characters of a line that goes to a file or another program."""


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "runs",
        description="List runs, the newest last: of the folder of results and the lab's store, or of "
        "a folder, InfluxDB (--from influx), the store alone (--from history), or the published "
        "guides that come with evmperf (--from baselines).",
    )
    parser.add_argument("--board", help="only runs of this board")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many (default: 20)")
    arguments.add_results(parser)
    sources.add_from(parser)
    parser.set_defaults(func=_runs)


def _runs(options: argparse.Namespace) -> int:
    named = (None, sources.INFLUX, sources.HISTORY, sources.PUBLISHED, "baselines")
    if options.source not in named and not Path(options.source).is_dir():
        raise UsageError(
            f"{options.source}: there is no such folder of runs; measure with "
            f"pytest --lg-env BOARD.yaml, or say --from FOLDER"
        )
    with sources.earlier(options) as source:
        runs = [entry.run for entry in source.everything()]
    mine = [run for run in runs if options.board in (None, run.board)]
    if not mine:
        known = ", ".join(sorted({run.board for run in runs})) or "none"
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
    print(table(columns, [_row(run) for run in mine[-options.last :]], width), end="")
    return 0


def _row(run: Run) -> tuple[str, ...]:
    began = datetime.fromtimestamp(run.started_ns / 1e9, UTC)
    return (
        run.id,
        f"{began:%Y-%m-%d %H:%M}" if run.started_ns else "-",
        run.kind,
        run.release or "-",
        run.profile,
        run.outcome or "not ended, or killed",
    )
