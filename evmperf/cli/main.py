"""The `evmperf` command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from evmperf import __version__
from evmperf.cli import arguments
from evmperf.measure.ending import Ending
from evmperf.model.errors import EvmperfError
from evmperf.model.exits import ExitStatus, of_kind

if TYPE_CHECKING:
    from evmperf.benchmarks.benchmark import Benchmark
    from evmperf.boards.board import Board


_EXTRAS = {
    "docutils": "guide",
    "matplotlib": "guide",
    "sphinx": "guide",
    "weasyprint": "guide",
    "grafana_foundation_sdk": "dashboards",
}
"""Modules that not every host needs, and the extra of pyproject.toml that brings them."""


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit status of a wrong call that all our commands have."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ExitStatus.USAGE, f"{self.prog}: error: {message}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status (evmperf.model.exits)."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:
        from evmperf.cli import completion  # noqa: PLC0415  # for shells only

        completion.complete(parser)
    options = parser.parse_args(words)
    try:
        with Ending().watching():
            status: int = options.func(options)
    except EvmperfError as error:
        print(f"evmperf: {error}", file=sys.stderr)
        return of_kind(error.kind)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if not extra:
            raise
        print(
            f"evmperf: this needs {error.name}, which is not installed: "
            f"pip install 'evmperf[{extra}]'",
            file=sys.stderr,
        )
        return ExitStatus.USAGE
    except BrokenPipeError:
        # Somebody's `| head` has read enough; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    from evmperf.cli import (  # noqa: PLC0415  # after the errors it may raise
        ab,
        bisect,
        board,
        doctor,
        explain,
        gitlab,
        guide,
        history,
        influx,
        keeping,
        lava,
        night,
        provision,
        regress,
        replay,
        report,
        runs,
        site,
        virtual,
    )

    parser = _Parser(
        prog="evmperf",
        description="The hardware-in-the-loop performance lab for TI evaluation modules. "
        "Boards are measured with pytest (pytest --lg-env BOARD.yaml -k emmc); "
        "this command is for everything around that.",
        epilog="Exit status, of pytest too: 0 done, 1 something failed or is worse, 2 interrupted, "
        "3 the lab is broken, 4 a wrong call, 5 nothing to do. `evmperf COMMAND --help` says more; "
        "docs/ has a page for each subject.",
    )
    parser.add_argument("--version", action="version", version=f"evmperf {__version__}")
    commands: Any = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_list(commands)
    _add_show(commands)
    guide.add_parsers(commands)
    regress.add_parsers(commands)
    ab.add_parser(commands)
    bisect.add_parsers(commands)
    board.add_parser(commands)
    doctor.add_parser(commands)
    explain.add_parser(commands)
    influx.add_parser(commands)
    runs.add_parser(commands)
    history.add_parser(commands)
    report.add_parser(commands)
    site.add_parser(commands)
    replay.add_parser(commands)
    keeping.add_parsers(commands)
    night.add_parsers(commands)
    provision.add_parsers(commands)
    virtual.add_parser(commands)
    lava.add_parser(commands)
    gitlab.add_parser(commands)
    return parser


def _add_list(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        help="all benchmarks, and the reason why a board skips one",
        description="List the benchmarks of the catalogue; with a board, say which of them "
        "it can run, and the skip reason of the others. Tables of published guides that no "
        "benchmark measures follow, with the reason.",
    )
    parser.add_argument("--board", help="a board file, as for pytest --lg-env")
    parser.add_argument(
        "--profile", choices=("full", "quick"), help="default: the board's, or full"
    )
    parser.add_argument("--json", action="store_true", help="a list of objects, for programs")
    parser.set_defaults(func=_list)


def _list(options: argparse.Namespace) -> int:
    from evmperf.benchmarks import catalogue  # noqa: PLC0415
    from evmperf.measure import boardfile  # noqa: PLC0415  # YAML is slow to import

    board = boardfile.named(options.board) if options.board else None
    profile = options.profile or (board.options.board.profile if board else "full")
    rows = [_entry(benchmark, profile, board) for benchmark in catalogue.benchmarks().values()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    width, drivers = (max((len(row[key]) for row in rows), default=0) for key in ("id", "driver"))
    for row in rows:
        reason = f"  cannot: {row['reason']}" if row.get("reason") else ""
        count = f"{len(row['cases']):>3} {'case' if len(row['cases']) == 1 else 'cases'}"
        line = f"{row['id']:<{width}}  {row['driver']:<{drivers}}  {count:<9}{reason}"
        print(line.rstrip())
    _print_not_measured()
    return 0


def _print_not_measured() -> None:
    from evmperf.published import declared  # noqa: PLC0415  # YAML is slow to import

    tables = [table for table in declared.tables().values() if not table.module]
    width, drivers = (max(len(t.benchmark) for t in tables), max(len(t.driver) for t in tables))
    print("\nRead from published guides, and not measured:")
    for table in tables:
        print(
            f"{table.benchmark:<{width}}  {table.driver:<{drivers}}  {table.not_measured}".rstrip()
        )


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


def _add_show(commands: Any) -> None:
    parser = commands.add_parser(
        "show",
        help="the table of a run",
        description="Show the results of a run, the facts they were measured under, and what "
        "failed. The run may still be going on.",
    )
    arguments.add_run(parser)
    parser.add_argument("--facts", action="store_true", help="everything known about the board")
    parser.set_defaults(func=_show)


def _show(options: argparse.Namespace) -> int:
    from evmperf.published.baseline import of_board  # noqa: PLC0415
    from evmperf.report.table import text_table  # noqa: PLC0415
    from evmperf.runs import spool  # noqa: PLC0415
    from evmperf.runs.history import GUIDE, run_folder  # noqa: PLC0415

    folder = run_folder(options.run, options.results)
    run = spool.read_run(folder)
    results = spool.read_results(folder)
    print(f"{run.id}: {run.board}, profile {run.profile}, {run.os or 'operating system unknown'}")
    print(f"release {run.release or 'unknown'}, kernel {run.facts.get('kernel', 'unknown')}")
    print(f"{run.outcome or 'This run has not ended, or was killed.'}\n")
    if results:
        baseline = of_board(run) if run.kind != GUIDE else None
        width = None if sys.stdout.isatty() else 140 if baseline else 120
        print(text_table(results, width, baseline), end="")
    for result in results:
        for failure in result.failures:
            what = "refused" if failure.refused else "failed"
            print(
                f"{result.benchmark} {result.case} {failure.step}: {what} ({failure.kind}): "
                f"{failure.message}{f' [{failure.raw}]' if failure.raw else ''}"
            )
    if options.facts:
        print(json.dumps(run.facts, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
