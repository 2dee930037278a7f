"""Runs for other people and programs: `evmperf site`, `push`, `query`, `export` and `store`."""

import argparse
import csv
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

from evmperf.commands.app import publishing, sources
from evmperf.commands.app.requests import WriteSite
from evmperf.commands.cli.arguments import (
    RESULTS,
    RUNS,
    SOURCE,
    argument,
    command,
    duration,
    either,
    requested,
    say,
    tell,
)
from evmperf.commands.cli.terminal import width
from evmperf.measure.runs.history import run_folder
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.report import exports
from evmperf.publish.report.columns import Column, table
from evmperf.publish.store import files, tables
from evmperf.publish.store.source import place

_FORMATS = ("parquet", "csv", *exports.FORMATS)


_FROM = argument(
    "--from",
    default="history",
    dest="source",
    metavar="DIR|history|baselines",
    help="where the runs are (default: history, the lab's store)",
)


@command(
    "site",
    RESULTS,
    argument("-o", "--output", type=Path, metavar="DIR", required=True),
    SOURCE,
    argument("--published", action="store_true", help="of TI's published figures instead of runs"),
    argument(
        "--reports",
        default="",
        metavar="ADDRESS|copied",
        help=(
            "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the "
            "reports into the site (default: where they lie on this host)"
        ),
    ),
)
def _site(options: argparse.Namespace) -> None:
    """Writes static pages of all runs: every board, benchmark and case over time, what changed when and
    what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
    """
    if options.published:
        options.source = sources.PUBLISHED
    print(publishing.site(requested(WriteSite, options), say).sentence)


@command("push", RUNS, RESULTS)
def _push(options: argparse.Namespace) -> None:
    """Sends runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET or
    ~/.config/evmperf/influx.toml name. Sending twice changes nothing. Without RUN, sends what is not
    there yet; a named run is sent as a whole.
    """
    runs = [run_folder(run, options.results) for run in options.run]
    for said, problem in publishing.sent(options.results, runs):
        print(said)
        if problem:
            tell(problem)


@command(
    "query",
    argument("question", metavar="SQL", help="one SELECT"),
    _FROM,
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
    with sources.opened(options.source) as source, tables.opened(source) as there:
        answer = tables.ask(there, options.question, options.timeout)
    if options.json:
        found = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print(json.dumps(found, indent=1, default=str, ensure_ascii=False))
    elif options.csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([answer.columns, *answer.rows])
    else:
        numbers = [all(isinstance(v, int | float | None) for v in c) for c in zip(*answer.rows, strict=True)]
        columns = [
            Column(name, right=right, wrap=not right)
            for name, right in zip(answer.columns, numbers or [False] * len(answer.columns), strict=True)
        ]
        print(table(columns, [[_cell(value) for value in row] for row in answer.rows], width()), end="")
    return ExitStatus.OK if answer.rows else ExitStatus.NOTHING


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime.datetime) else str(value)


@command(
    "export",
    argument("run", nargs="*", help="the ids of runs"),
    _FROM,
    either(
        argument("--parquet", type=Path, metavar="FILE", help="one row per sample"),
        argument("--csv", type=Path, metavar="FILE", help="the same as text"),
        argument("--bmf", type=Path, metavar="FILE", help="one run for Bencher"),
        argument("--kcidb", type=Path, metavar="FILE", help="for KernelCI's database"),
        argument("--junit", type=Path, metavar="FILE", help="one test per case"),
        argument("--openmetrics", type=Path, metavar="FILE", help="every figure, for Prometheus"),
        required=True,
    ),
)
def _export(options: argparse.Namespace) -> None:
    """Write runs in the formats of other programs; all runs, or those named."""
    (name,) = [name for name in _FORMATS if getattr(options, name)]
    file: Path = getattr(options, name)
    with sources.opened(options.source) as source:
        known = source.runs()
        if missing := sorted(set(options.run) - {entry.run.id for entry in known}):
            raise UsageError(f"{source}: has no run {missing[0]!r}")
        wanted = [entry for entry in known if not options.run or entry.run.id in options.run]
        if not wanted:
            raise UsageError(f"{source}: holds no runs")
        if name in exports.FORMATS:
            runs = [(entry.run, entry.results()) for entry in wanted]
            file.write_text(exports.FORMATS[name](runs), encoding="utf-8")
        else:
            with tables.opened(source) as there:
                ids = ", ".join(files.text(entry.run.id) for entry in wanted)
                where = f" WHERE run IN ({ids})" if options.run else ""
                tables.write(there, f"SELECT * FROM samples{where} ORDER BY ALL", file, name)
    print(f"{file}: {len(wanted)} runs")


@command("store", RUNS, RESULTS)
def _store(options: argparse.Namespace) -> int:
    """Keep runs in the lab's store [EVMPERF_HISTORY: a folder or a URL], as `check` does: those named, or
    all below --results. Runs already there stay unchanged.
    """
    folders = [run_folder(run, options.results) for run in options.run]
    folders = folders or sorted(path.parent for path in options.results.glob("*/run.json"))
    new, status = sources.keep(folders, tell)
    print(f"{place(os.environ)}: {new} of {len(folders)} runs are new")
    return status
