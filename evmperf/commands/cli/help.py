"""`evmperf help`: the pages of docs/, from a checkout or an installed wheel."""

import argparse
import pydoc
import sys

from evmperf.commands.cli.arguments import argument, command
from evmperf.model.errors import UsageError, meant
from evmperf.model.places import project


@command(
    "help", argument("page", nargs="?", default="README", help="default: the list of all pages (README)")
)
def _help(options: argparse.Namespace) -> None:
    """Shows a page of the documentation, on a terminal through $PAGER."""
    names = [file.stem for file in project("docs").glob("*.md")]
    name = options.page.removeprefix("docs/").removesuffix(".md")
    if name not in names:
        raise UsageError(f"there is no page {name!r}{meant(name, names)}; `evmperf help` lists all pages")
    text = (project("docs") / f"{name}.md").read_text()
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        print(text, end="")
