"""`evmperf site`."""

import argparse
from pathlib import Path
from typing import Any

from evmperf.app import publishing, sources
from evmperf.app.requests import WriteSite
from evmperf.cli import arguments

_ABOUT = """\
Writes static pages of all runs: every board, benchmark and case over time, what changed when and
what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
"""


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = arguments.command(commands, "site", _site, _ABOUT, "--results")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    arguments.add_from(parser)
    parser.add_argument("--published", action="store_true", help="of TI's published figures instead of runs")
    text = "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the reports into "
    text += "the site (default: where they lie on this host)"
    parser.add_argument("--reports", default="", metavar="ADDRESS|copied", help=text)


def _site(options: argparse.Namespace) -> int:
    source = sources.PUBLISHED if options.published else options.source or ""
    request = WriteSite(
        output=str(options.output), results=str(options.results), source=source, reports=options.reports
    )
    print(publishing.site(request, arguments.say).sentence)
    return 0
