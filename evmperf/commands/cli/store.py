"""`evmperf store add`: the lab's store of runs, and questions in SQL. It needs DuckDB."""

import argparse
import csv
import datetime
import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from evmperf.commands.app import sources
from evmperf.commands.cli.arguments import (
    RESULTS,
    RUNS,
    STORE,
    argument,
    command,
    duration,
    either,
    group,
    tell,
)
from evmperf.commands.cli.terminal import width
from evmperf.measure.runs.history import run_folder
from evmperf.model.exits import ExitStatus
from evmperf.publish.report.columns import Column, table
from evmperf.publish.store.limited import limited

group("store", "The lab's store of runs (docs/store.md).")


@command(
    "store query",
    argument("question", metavar="SQL", help="one SELECT"),
    STORE,
    argument("--timeout", type=duration, default=60.0, metavar="TIME", help="default: 60s"),
    either(
        argument("--csv", action="store_true", help="print CSV instead of a table"),
        argument("--json", action="store_true", help="print a list of objects"),
    ),
)
def _query(options: argparse.Namespace) -> int:
    """Ask all runs a question in SQL (DuckDB's). Tables: runs, results, samples, boots, marks, facts,
    verdicts, published; `DESCRIBE samples` names a table's columns, docs/store.md has examples.
    """
    from evmperf.publish.store import tables  # noqa: PLC0415  # DuckDB is an extra

    def work(out: TextIO) -> int:
        answer = tables.ask(database, options.question)
        _write(out, answer.columns, answer.rows, "json" if options.json else "csv" if options.csv else "")
        return ExitStatus.OK if answer.rows else ExitStatus.NOTHING

    with sources.opened(options.source) as source, tables.opened(source, tell) as database:
        return limited(work, sys.stdout, options.timeout, tables.MOST_BYTES)


def _write(out: TextIO, names: Sequence[str], rows: Sequence[tuple[object, ...]], form: str) -> None:
    """Write an answer as "json", as "csv", or as a table for people ("")."""
    if form == "json":
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        print(json.dumps(objects, indent=1, default=str, ensure_ascii=False), file=out)
    elif form == "csv":
        csv.writer(out, lineterminator="\n").writerows([names, *rows])
    else:
        numbers = [all(isinstance(v, int | float | None) for v in c) for c in zip(*rows, strict=True)]
        columns = [
            Column(name, right=right, wrap=not right)
            for name, right in zip(names, numbers or [False] * len(names), strict=True)
        ]
        print(table(columns, [[_cell(value) for value in row] for row in rows], width()), end="", file=out)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime.datetime) else str(value)


@command("store add", RUNS, RESULTS, listed="keep runs in the store")
def _store(options: argparse.Namespace) -> int:
    """Keep runs in the lab's store [EVMPERF_HISTORY: a folder or a URL], as `check` does: those named, or
    all below --results. Runs already there stay unchanged.
    """
    from evmperf.publish.store.source import place  # noqa: PLC0415  # DuckDB is an extra

    folders = [run_folder(run, options.results) for run in options.run]
    folders = folders or sorted(path.parent for path in options.results.glob("*/run.json"))
    new, status = sources.keep(folders, tell)
    print(f"{place(os.environ)}: {new} of {len(folders)} runs are new")
    return status
