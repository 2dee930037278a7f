"""`evmperf why` and `report`: the figures of a run explained, for a terminal and as a page."""

import argparse
from pathlib import Path

from evmperf.commands.app import again, why
from evmperf.commands.cli.arguments import RESULTS, RUN, argument, command
from evmperf.commands.cli.terminal import width
from evmperf.measure.runs.history import run_folder
from evmperf.measure.runs.spool import read_run
from evmperf.model.errors import UsageError
from evmperf.model.outlets import line
from evmperf.publish.pages import look
from evmperf.publish.report.columns import Column, table


@command(
    "why",
    RUN,
    RESULTS,
    argument("case", nargs="?", default="", help="a benchmark, or BENCHMARK CASE"),
    argument("--against", default="", metavar="RUN", help="a good run, or guide:FILE"),
    argument(
        "--profile",
        action="store_true",
        help="measure the case once more with perf on the board, and show the symbols that took the time",
    ),
    argument("--lg-env", dest="board", default="", metavar="BOARD.yaml", help="(default: the run's)"),
)
def _why(options: argparse.Namespace) -> None:
    """Explains why figures are worse than the published ones or those of another run: causes read on the
    board around the case, each with its evidence, its largest effect and its proof. Without a case, it
    explains all figures that are more than 5 % worse. With --profile and a run by --against that was
    profiled, too, the table has the symbols of both.
    """
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    if options.profile:
        _profile(options, folder, Path(against) if against else None)
        return
    explained = why.explain(folder, options.case, against)
    print(look.render("commands/cli/why.txt.j2", explained=explained), end="")


def _profile(options: argparse.Namespace, folder: Path, against: Path | None) -> None:
    board = options.board or read_run(folder).facts.board_file
    if not board:
        raise UsageError(f"{folder.name} does not say what its board file was: name one with --lg-env")
    made = again.profile(folder, options.case, board, against, options.results)
    columns = [Column("symbol"), Column("here", right=True), Column("good run", right=True)]
    rows = [(name, f"{here:.1%}", "" if good is None else f"{good:.1%}") for name, here, good in made.symbols]
    shown = len(columns) if made.there else 2
    print(table(columns[:shown], [row[:shown] for row in rows], width()))
    for where, one in (("here", made.here), ("in the good run", made.there)):
        if one:
            clock = f"; {one.per_cycle:.2f} instructions a cycle" if one.per_cycle else ""
            idle = one.idle / max(one.idle + one.symbols.total(), 1)
            print(
                f"{where}: {one.symbols.total()} samples (parts within {one.uncertainty:.1%}), and CPUs idle "
                f"{idle:.0%} of the time{clock}"
            )
    if options.against and not made.there:
        print(f"{options.against} has no profile of this case: make one by evmperf why with --profile")
    print(line(f"{made.case} measured into {made.folder}; stacks for flame graphs: {made.folded}"))


@command("report", RUN, RESULTS)
def _report(options: argparse.Namespace) -> None:
    """Writes report.html of a run again from the run's files, also for a run at work or a killed run."""
    print(why.report(run_folder(options.run, options.results)))
