"""`evmperf site` and `evmperf push`: runs for other people and programs."""

import argparse

from evmperf.app import publishing, sources
from evmperf.app.requests import WriteSite
from evmperf.cli.arguments import command, requested, say, tell
from evmperf.runs.history import run_folder


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
