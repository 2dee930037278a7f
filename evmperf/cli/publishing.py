"""`evmperf site` and `evmperf push`: runs for other people and programs."""

import argparse
from pathlib import Path

from evmperf.app import publishing, sources
from evmperf.app.requests import WriteSite
from evmperf.cli.arguments import RESULTS, RUNS, SOURCE, arg, command, flag, requested, say, tell
from evmperf.runs.history import run_folder

_ABOUT = """\
Writes static pages of all runs: every board, benchmark and case over time, what changed when and
what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
"""


@command(
    "site",
    _ABOUT,
    RESULTS,
    arg("-o --output=DIR", type=Path, required=True),
    SOURCE,
    flag("--published", "of TI's published figures instead of runs"),
    arg(
        "--reports=ADDRESS|copied",
        "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the reports "
        "into the site (default: where they lie on this host)",
    ),
)
def _site(options: argparse.Namespace) -> None:
    if options.published:
        options.source = sources.PUBLISHED
    print(publishing.site(requested(WriteSite, options), say).sentence)


_PUSH = """\
Sends runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET or
~/.config/evmperf/influx.toml name. Sending twice changes nothing. Without RUN, sends what is not
there yet; a named run is sent as a whole.
"""


@command("push", _PUSH, RUNS, RESULTS)
def _push(options: argparse.Namespace) -> None:
    runs = [run_folder(run, options.results) for run in options.run]
    for said, problem in publishing.sent(options.results, runs):
        print(said)
        if problem:
            tell(problem)
