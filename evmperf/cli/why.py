"""`evmperf why`."""

import argparse
from collections.abc import Iterator
from typing import Any

from evmperf.app import why
from evmperf.app.requests import Explained, Why
from evmperf.cli import arguments
from evmperf.model.outlets import line
from evmperf.runs.history import run_folder


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "why",
        description="Say why figures are worse than the published ones, or than those of another "
        "run: causes that were read on the board around the case, each with its evidence, what it "
        "explains at most, and what would prove it. Without a case, for all figures that are more "
        "than 5 %% worse.",
    )
    arguments.add_run(parser)
    parser.add_argument("case", nargs="?", default="", help="a benchmark, or BENCHMARK CASE")
    parser.add_argument("--against", metavar="RUN", help="a run in which all was well, or guide:FILE")
    parser.set_defaults(func=_why)


def _why(options: argparse.Namespace) -> int:
    folder = run_folder(options.run, options.results)
    against = options.against or ""
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    request = Why(folder=str(folder), case=options.case, against=against)
    print("\n".join(map(line, _lines(why.explain(request)))))
    return 0


def _lines(explained: Explained) -> Iterator[str]:
    if not explained.answers:
        none = f"nothing is published of {explained.board}; name a run in which all was well: --against RUN"
        worse = f"no figure is worse than {explained.against}"
        yield f"{explained.run}: {worse if explained.against else none}"
    for answer in explained.answers:
        yield f"{answer.benchmark} {answer.case} {answer.metric}".rstrip() + f": {answer.headline}"
        if answer.published:
            yield f"  published: {answer.published}"
        if answer.known:
            yield f"  all that is known of it: {answer.known}"
        for number, cause in enumerate(answer.causes, 1):
            yield f"  {number}. {cause}"
            if cause.elsewhere:
                yield f"     elsewhere: {cause.elsewhere}"
            yield f"     to prove it: {cause.proof}"
        yield from (f"  {note}" for note in (*answer.notes, answer.unexplained) if note)
