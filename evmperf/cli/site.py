"""`evmperf site`."""

import argparse
from pathlib import Path

from evmperf.app import publishing, sources
from evmperf.app.requests import WriteSite
from evmperf.cli.arguments import RESULTS, SOURCE, arg, command, flag, requested, say

_ABOUT = """\
Writes static pages of all runs: every board, benchmark and case over time, what changed when and
what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
"""


@command(
    "site",
    _ABOUT,
    RESULTS,
    arg("-o --output", type=Path, required=True, metavar="DIR"),
    SOURCE,
    flag("--published", "of TI's published figures instead of runs"),
    arg(
        "--reports",
        "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the reports "
        "into the site (default: where they lie on this host)",
        metavar="ADDRESS|copied",
    ),
)
def _site(options: argparse.Namespace) -> None:
    if options.published:
        options.source = sources.PUBLISHED
    print(publishing.site(requested(WriteSite, options), say).sentence)
