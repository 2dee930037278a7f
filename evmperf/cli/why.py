"""`evmperf why`."""

import argparse
from collections.abc import Iterator

from evmperf.app import why
from evmperf.app.requests import Explained, Why
from evmperf.cli.arguments import RESULTS, RUN, arg, command
from evmperf.model.outlets import line
from evmperf.runs.history import run_folder

_ABOUT = """\
Explains why figures are worse than the published ones or those of another run: causes read on the
board around the case, each with its evidence, its largest effect and its proof. Without a case, it
explains all figures that are more than 5 % worse.
"""


@command(
    "why",
    _ABOUT,
    RUN,
    RESULTS,
    arg("case?", "a benchmark, or BENCHMARK CASE"),
    arg("--against", "a good run, or guide:FILE", metavar="RUN"),
)
def _why(options: argparse.Namespace) -> None:
    folder = run_folder(options.run, options.results)
    against = options.against
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    request = Why(folder=str(folder), case=options.case, against=against)
    print("\n".join(map(line, _lines(why.explain(request)))))


def _lines(explained: Explained) -> Iterator[str]:
    if not explained.answers:
        none = f"no published figures of {explained.board}; name a good run: --against RUN"
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
