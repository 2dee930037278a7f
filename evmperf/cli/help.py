"""`evmperf help`: the pages of docs/, from a checkout or an installed wheel."""

from __future__ import annotations

import argparse
import difflib
import pydoc
import sys
from typing import Any

from evmperf.model.errors import UsageError
from evmperf.model.places import project

_INDEX = "README"


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("help", description="Show a page of the documentation.")
    pages = sorted(file.stem for file in project("docs").glob("*.md"))
    parser.add_argument(
        "page", nargs="?", default=_INDEX, help=f"default: the list of all pages ({_INDEX})"
    ).completer = lambda **_: pages
    parser.set_defaults(func=lambda options: _help(options, pages))


def _help(options: argparse.Namespace, pages: list[str]) -> int:
    """Print the page as Markdown, on a terminal through $PAGER; raises UsageError."""
    name = options.page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        near = difflib.get_close_matches(name, pages, n=1)
        raise UsageError(
            f"there is no page {name!r}"
            + (f"; did you mean {near[0]!r}?" if near else "")
            + " `evmperf help` lists all pages"
        )
    text = (project("docs") / f"{name}.md").read_text()
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        print(text, end="")
    return 0
