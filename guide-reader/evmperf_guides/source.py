"""What a guide in reStructuredText holds: headings and tables with line numbers, cells as they stand."""

import itertools
import re
from dataclasses import dataclass, field

from evmperf.judge.published.declared import QUICK_MARK

TITLE = re.compile(
    r"(?P<os>[\w -]*?)\s*(?P<release>\d+(?:[._]\d+)+)?\s*(?:Kernel )?Performance Guide(?: for .*)?",
    re.IGNORECASE,
)
LINUX, RT_LINUX, UNKNOWN_OS = "Linux", "RT-linux", "unknown"
_SYSTEMS = {RT_LINUX: r"rt|preempt[ _-]?rt|real[ _-]?time", LINUX: "linux"}
"""Operating systems by the words for them; the first that is there counts."""
_NEXT_GUIDE = re.compile(r"(?m)^(?P<bar>[=*#~^\-])(?P=bar)+\n *(?P<title>\S[^\n]{0,99}?) *\n(?P=bar){8,}$")


@dataclass(frozen=True)
class GuideRow:
    """One row of a csv-table, as it stands, and its line in the file (counted from 1)."""

    cells: tuple[str, ...]
    line: int
    error: str = ""
    """Why it could not be taken apart; "" if it could."""


@dataclass
class SourceTable:
    """One csv-table: where it is, what it is called, and what it holds."""

    line: int
    caption: str
    caption_style: str
    """argument, before, after, or none."""
    header: tuple[str, ...]
    rows: list[GuideRow]
    text: str
    section: tuple[str, ...] = ()
    rubric: str = ""
    below: str = ""
    """Words between it and the next table or heading: notes say which board a table is of."""
    error: str = ""
    """Why the rows could not be read; "" if they could."""

    @property
    def name(self) -> str:
        """The caption without what evmperf's own guides add to it."""
        return self.caption.partition(QUICK_MARK)[0].strip()

    def is_quick(self, board: str) -> bool:
        """Whether the caption says that a board's figures are of the quick profile."""
        _, mark, rest = self.caption.partition(QUICK_MARK)
        names = rest.partition(")")[0].removeprefix(":").split(",")
        return bool(mark) and (names == [""] or board in map(str.strip, names))


@dataclass(frozen=True)
class Problem:
    """Something in a guide that is not known, as it is in `text`; or, where `kept`, known and doubtful."""

    line: int
    reason: str
    text: str = ""
    table: bool = False
    kept: bool = False


@dataclass(kw_only=True)
class ReadingNotes:
    """What was not read, and how many cells that is; and what was read and is doubtful."""

    problems: list[Problem] = field(default_factory=list)
    unknown_cells: int = 0

    def refuse(self, problem: Problem, cells: int) -> None:
        """Note what is not read."""
        self.problems.append(problem)
        self.unknown_cells += cells

    def remark(self, line: int, reason: str) -> None:
        """Note what is read and doubtful."""
        self.problems.append(Problem(line, reason, kept=True))


@dataclass
class Source:
    """A whole guide."""

    title: str = ""
    os: str = ""
    """As title or headings say it; "" if neither does."""
    release: str = ""
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """What is read, and pages show wrongly."""
    headings: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    """Names in the list of evaluation modules."""


def system_of(text: str) -> str:
    """The operating system that a title or a file's name says; "" if it says none."""
    words = re.sub(r"[^a-z0-9]+", " ", text.lower())
    return next((os for os, words_of in _SYSTEMS.items() if re.search(rf"\b({words_of})\b", words)), "")


def guides(text: str) -> list[str]:
    """The texts of the guides in one file, each at its own lines."""
    titles = ((head.start(), TITLE.fullmatch(head["title"])) for head in _NEXT_GUIDE.finditer(text))
    starts = [start for start, title in titles if title and (title["os"] or title["release"])]
    parts = itertools.pairwise([0, *starts[1:], len(text)])
    return ["\n" * text.count("\n", 0, first) + text[first:after] for first, after in parts]
