"""`evmperf benchmark`: the benchmarks that exist, and one of your own."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import FEATURES
from evmperf.commands.cli.arguments import BOARD_OPTION, JSON, PROFILE, argument, command, group
from evmperf.judge.published import declared
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.places import project

group(
    "benchmark",
    """Benchmarks, and those of your own (docs/add-a-benchmark.md). Put these into benchmarks/ of the folder
that you measure in; they run like evmperf's own.

  evmperf benchmark new copy_speed                     writes a benchmark that runs, and its test
  pytest benchmarks/_copy_speed_test.py                tests it without a board
  pytest --lg-env BOARD.yaml -k copy_speed             measures
""",
)


@command("benchmark list", BOARD_OPTION, PROFILE, JSON, listed="the benchmarks, and why a board skips one")
def _list(options: argparse.Namespace) -> None:
    """Lists the benchmarks of the catalogue; with a board, also the reason for each one it skips. Tables
    of published guides without a benchmark follow, with the reason.
    """
    board = boardfile.named(options.board) if options.board else None
    profile = options.profile or (board.options.board.profile if board else "full")
    rows = [_entry(benchmark, profile, board) for benchmark in catalogue.benchmarks().values()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    lines = []
    for row in rows:
        reason = f"  cannot: {row['reason']}" if row.get("reason") else ""
        count = f"{len(row['cases']):>3} {'case' if len(row['cases']) == 1 else 'cases'}"
        lines.append((row["id"], row["driver"], f"{count:<9}{reason}"))
    _print(lines)
    print("\nRead from published guides, and not measured:")
    _print([(t.benchmark, t.driver, t.not_measured) for t in declared.tables().values() if not t.module])


def _print(rows: list[tuple[str, str, str]]) -> None:
    width, drivers = (max(len(row[n]) for row in rows) for n in (0, 1))
    for name, driver, rest in rows:
        print(f"{name:<{width}}  {driver:<{drivers}}  {rest}".rstrip())


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


@command(
    "benchmark new",
    argument("name", help="lower-case letters, digits and _"),
    argument("--driver", default="system", choices=sorted(FEATURES), help="default: system"),
)
def _new(options: argparse.Namespace) -> None:
    """write a benchmark that runs, and its test"""
    name = options.name
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise UsageError(f"{name!r}: a name has lower-case letters, digits and _, e.g. copy_speed")
    if name in catalogue.benchmarks():
        raise UsageError(f"benchmark {name} already exists: choose another name")
    catalogue.OWN.mkdir(exist_ok=True)
    for file, template in ((f"{name}.py", "benchmark"), (f"_{name}_test.py", "benchmark_test")):
        text = (project("docs") / f"{template}.py.txt").read_text(encoding="utf-8")
        path = catalogue.OWN / file
        with path.open("x", encoding="utf-8") as target:
            target.write(text.replace("copy_speed", name).replace("DRIVER", options.driver))
        print(f"{path}: written")
    test = Path(catalogue.OWN, f"_{name}_test.py")
    print(f"next: pytest {test}, then pytest --lg-env BOARD.yaml -k {name}")
