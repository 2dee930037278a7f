"""`evmperf why` and `report`: the figures of a run explained, for a terminal and as a page."""

import argparse

from evmperf.commands.app import why
from evmperf.commands.app.requests import Why
from evmperf.commands.cli.arguments import command
from evmperf.measure.runs.history import run_folder
from evmperf.publish.pages import look


@command("why")
def _why(options: argparse.Namespace) -> None:
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    explained = why.explain(Why(folder=str(folder), case=options.case, against=against))
    print(look.render("commands/cli/why.txt.j2", explained=explained), end="")


@command("report")
def _report(options: argparse.Namespace) -> None:
    print(why.report(run_folder(options.run, options.results)))
