"""`evmperf site`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from evmperf import site
from evmperf.cli import sources


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "site",
        description="Write static pages of all runs there are: every board, benchmark and case "
        "over time, what changed when and what became worse. They open from a file system, on a "
        "phone, and in GitLab Pages (docs/site.md).",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--from",
        dest="source",
        default="results",
        metavar="DIR|history|influx",
        help="where the runs are (default: results)",
    )
    parser.add_argument(
        "--history", action="store_true", help="with the lab's earlier runs (docs/judging.md)"
    )
    parser.add_argument("--published", action="store_true", help="of TI's published figures instead of runs")
    parser.add_argument(
        "--reports",
        default="",
        metavar="ADDRESS|copied",
        help="where the runs' folders can be seen, e.g. https://lab/results, or `copied`: copy the "
        "reports into the site (default: where they lie on this host)",
    )
    parser.set_defaults(func=_site)


def _site(options: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        named = sources.PUBLISHED if options.published else options.source
        wanted = [named, *([sources.HISTORY] if options.history else [])]
        opened = [stack.enter_context(sources.opened(name)) for name in wanted]
        written = site.write(options.output, *opened, reports=options.reports)
    for problem in written.problems:
        print(f"evmperf: {problem}", file=sys.stderr)
    print(
        f"{written.index}: {written.runs} runs of {written.boards} boards on "
        f"{written.pages} pages, the largest {written.largest / 1e6:.2f} MB"
    )
    return 0
