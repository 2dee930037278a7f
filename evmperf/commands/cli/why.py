"""`evmperf why` and `report`: the figures of a run explained, for a terminal and as a page."""

import argparse

from evmperf.commands.app import why
from evmperf.commands.app.requests import Why
from evmperf.commands.cli.arguments import RESULTS, RUN, argument, command
from evmperf.measure.runs.history import run_folder
from evmperf.publish.pages import look


@command(
    "why",
    RUN,
    RESULTS,
    argument("case", nargs="?", default="", help="a benchmark, or BENCHMARK CASE"),
    argument("--against", default="", metavar="RUN", help="a good run, or guide:FILE"),
)
def _why(options: argparse.Namespace) -> None:
    """Explains why figures are worse than the published ones or those of another run: causes read on the
    board around the case, each with its evidence, its largest effect and its proof. Without a case, it
    explains all figures that are more than 5 % worse.
    """
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    explained = why.explain(Why(folder=str(folder), case=options.case, against=against))
    print(look.render("commands/cli/why.txt.j2", explained=explained), end="")


@command("report", RUN, RESULTS)
def _report(options: argparse.Namespace) -> None:
    """Writes report.html of a run again from the run's files, also for a run at work or a killed run."""
    print(why.report(run_folder(options.run, options.results)))
