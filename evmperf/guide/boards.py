"""The boards of a guide: its only one, and names that look misspelt."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from evmperf.guide.match import Match, split_header
from evmperf.guide.source import Problem, Source, SourceTable
from evmperf.published import identity

_ALIKE = 0.85
"""difflib's ratio of names that a slip of the hand may have made of each other."""
_HEADING = 4
"""Letters and digits of the shortest heading that may be a board."""
_RARE = 0.2
"""A name that stands in at most this share of the tables of a name like it is misspelt."""


@dataclass(frozen=True)
class Boards:
    """`lone` is the board of tables that name none, "" if there is not exactly one; `modules` are
    the boards in its list of evaluation modules.
    """

    names: tuple[str, ...]
    lone: str
    misspelt: tuple[str, ...]
    problems: tuple[Problem, ...]
    modules: frozenset[str]


def of_guide(source: Source, given: str = "") -> Boards:
    """The boards that the headers of a guide name; tables that name none are the `given` one's, or
    that of the guide's only board, or of the only one in its list of evaluation modules.
    """
    counts: Counter[str] = Counter()
    lines: dict[str, int] = {}
    for table in source.tables:
        for board in {split_header(text)[0] for text in table.header} - {""}:
            counts[board] += 1
            lines.setdefault(board, table.line)
    problems: list[Problem] = []
    misspelt = []
    for board in counts:
        if board in identity.known():
            continue
        others = [
            b for b in counts if counts[board] < counts[b] and counts[board] <= max(1, _RARE * counts[b])
        ]
        if near := difflib.get_close_matches(board, others, n=1, cutoff=_ALIKE):
            misspelt.append(board)
            reason = (
                f"the board {board!r} is in {counts[board]} of the tables and resembles "
                f"{near[0]!r}: its figures are not read"
            )
            problems.append(Problem(lines[board], reason))
        elif near := difflib.get_close_matches(board, identity.known(), n=1, cutoff=_ALIKE):
            reason = f"the board {board!r} is unknown and resembles {near[0]!r}"
            problems.append(Problem(lines[board], reason, kept=True))
    names = tuple(board for board in counts if board not in misspelt)
    modules = frozenset(identity.of_module(module) for module in source.modules)
    lone = names[0] if len(names) == 1 else ""
    if not names and len(modules) == 1:
        (lone,) = modules
    return Boards(names, given or lone, tuple(misspelt), tuple(problems), modules)


def headed(source: SourceTable, boards: Boards) -> str:
    """The board of a table whose header names none: the guide's only one, or the one that a heading
    above it names; "" if neither says.
    """
    for words in (*source.section, source.rubric, source.name):
        text = _squeezed(words)
        named = [board for board in boards.names if _squeezed(board).startswith(text)]
        if len(text) >= _HEADING and len(named) == 1:
            return named[0]
        if board := identity.of_module(words):
            return next((name for name in boards.names if identity.same(name, board)), board)
    return boards.lone


def remarks(source: SourceTable, found: Match, boards: Boards, lone: str) -> Iterator[str]:
    """What is doubtful about the boards of a table: it is below another board's heading, or names no
    board and is taken as the `lone` one's.
    """
    mine = {_squeezed(board) for board in found.boards}
    others = {_squeezed(board) for board in (*boards.names, *identity.known())} - mine
    for heading in source.section if mine else ():
        text = _squeezed(heading)
        there, elsewhere = (any(board.startswith(text) for board in names) for names in (mine, others))
        if len(text) >= _HEADING and elsewhere and not there:
            yield f"is below {heading!r}, but its header names {', '.join(found.boards)}"
    board = "" if found.boards else headed(source, boards)
    if not found.boards and not board:
        yield f"it names no board; of the guide's, only {lone} has such figures"
    elif board and found.table.board_in_header:
        yield f"its header names no board; taken as {board}'s"


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
