"""`evmperf why` and `report`: the figures of a run explained, for a terminal and as a page."""

import argparse

from evmperf.app import why
from evmperf.app.requests import Why
from evmperf.cli.arguments import command
from evmperf.pages import look
from evmperf.runs.history import run_folder


@command("why")
def _why(options: argparse.Namespace) -> None:
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    explained = why.explain(Why(folder=str(folder), case=options.case, against=against))
    print(look.render("cli/why.txt.j2", explained=explained), end="")


@command("report")
def _report(options: argparse.Namespace) -> None:
    print(why.report(run_folder(options.run, options.results)))
