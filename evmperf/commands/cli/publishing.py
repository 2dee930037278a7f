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
from evmperf.commands.cli.arguments import command, requested, say, tell
from evmperf.commands.cli.terminal import width
from evmperf.measure.runs.history import run_folder
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.report import exports
from evmperf.publish.report.columns import Column, table
from evmperf.publish.store import files, tables
from evmperf.publish.store.source import place

_FORMATS = ("parquet", "csv", *exports.FORMATS)


@command("site")
def _site(options: argparse.Namespace) -> None:
    if options.published:
        options.source = sources.PUBLISHED
    print(publishing.site(requested(WriteSite, options), say).sentence)


@command("push")
def _push(options: argparse.Namespace) -> None:
    runs = [run_folder(run, options.results) for run in options.run]
    for said, problem in publishing.sent(options.results, runs):
        print(said)
        if problem:
            tell(problem)


@command("query")
def _query(options: argparse.Namespace) -> int:
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


@command("export")
def _export(options: argparse.Namespace) -> None:
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


@command("store")
def _store(options: argparse.Namespace) -> int:
    folders = [run_folder(run, options.results) for run in options.run]
    folders = folders or sorted(path.parent for path in options.results.glob("*/run.json"))
    new, status = sources.keep(folders, tell)
    print(f"{place(os.environ)}: {new} of {len(folders)} runs are new")
    return status
