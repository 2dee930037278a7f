"""`evmperf site`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from evmperf import site
from evmperf.cli import arguments, sources

_ABOUT = """\
Writes static pages of all runs: every board, benchmark and case over time, what changed when and
what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
"""


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = arguments.command(commands, "site", _site, _ABOUT, "--results")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    sources.add_from(parser)
    parser.add_argument("--published", action="store_true", help="of TI's published figures instead of runs")
    text = "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the reports into "
    text += "the site (default: where they lie on this host)"
    parser.add_argument("--reports", default="", metavar="ADDRESS|copied", help=text)


def _site(options: argparse.Namespace) -> int:
    options.source = sources.PUBLISHED if options.published else options.source
    with sources.earlier(options) as source:
        written = site.write(options.output, source, reports=options.reports)
    for problem in written.problems:
        print(f"evmperf: {problem}", file=sys.stderr)
    print(
        f"{written.index}: {written.runs} runs of {written.boards} boards on "
        f"{written.pages} pages, the largest {written.largest / 1e6:.2f} MB"
    )
    return 0
