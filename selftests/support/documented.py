"""The command lines that README, docs/ and the `--help` of commands show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")))

_PROGRAMS = r"(?:evmperf|pytest|make|git|pip|python|labgrid-client|export)"
_LINE = re.compile(rf"(?:[A-Z_]+=\S+ )*{_PROGRAMS} \S.*|evmperf")
_EXAMPLE = re.compile(r"(?:[A-Z_]+=\S+ )*evmperf ([\w-]+)( .*)?")
_INLINE = re.compile(r"`((?:evmperf|pytest) [^`>\n]+)`")


class Documented(NamedTuple):
    """A command line, and where it stands: a page, or the command whose help shows it."""

    where: str
    line: int
    text: str


def blocks(page: str) -> Iterator[Documented]:
    """The command lines of a page's indented and fenced blocks, continued lines joined."""
    fenced, begun, above = False, "", ""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif begun or fenced or (line.startswith("    ") and (not above or above.startswith("    "))):
            text = begun + line.strip()
            begun = text.removesuffix("\\") if text.endswith("\\") else ""
            if not begun and _LINE.fullmatch(text):
                yield Documented(page, number, text)
        above = line.strip() and line


def examples(command: str, text: str) -> Iterator[Documented]:
    """The command lines among the words of a command's help; what a line does stands two spaces after it."""
    joined = re.sub(r"\\\n\s*", "", text.partition("\n\n")[2])
    for number, line in enumerate(joined.splitlines(), 1):
        shown = re.split(r"\s{2,}", line.strip())[0]
        if (example := _EXAMPLE.fullmatch(shown)) and example[1] == command:
            yield Documented(f"{command} --help", number, shown)


def inline(page: str) -> Iterator[Documented]:
    """The command lines within a page's sentences."""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        yield from (Documented(page, number, text) for text in _INLINE.findall(line))
