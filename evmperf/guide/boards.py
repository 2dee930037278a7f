"""The boards of a guide: its only one, and names that look misspelt."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from evmperf.guide import rows
from evmperf.guide.match import Match, split_header
from evmperf.guide.rows import Problem
from evmperf.guide.source import Source, SourceTable
from evmperf.model.figures import Key
from evmperf.published import identity, steady

_ALIKE = 0.85
"""difflib's ratio of names that a slip of the hand may have made of each other."""
_HEADING = 4
"""Letters and digits of the shortest heading that may be a board."""
_LIKE = 1.5
"""A factor within which figures of one board in two releases are alike."""
_MANY = 8
"""Figures that must be alike: boards with one kind of chip have a few in common, as latencies."""
_OFTEN = 3
"""How often as many must be alike as are not."""
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
                f"the board {board!r} stands in {counts[board]} of the tables and is nearly "
                f"{near[0]!r}: its figures are not read"
            )
            problems.append(Problem(lines[board], reason))
        elif near := difflib.get_close_matches(board, identity.known(), n=1, cutoff=_ALIKE):
            reason = f"the board {board!r} is not known, and is nearly {near[0]!r}"
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


def published(source: SourceTable, found: Match, boards: Boards, os: str) -> str:
    """The only one of a guide's boards that the record has this table of, if its figures are like
    those there (a guide that only gives the layout has none); "" where there is no such board, or
    where the list has a name that is not known.
    """
    mine = {identity.board(name) for name in (*boards.names, *boards.modules)}
    benchmark = found.table.benchmark
    histories = {board: steady.history(board, os) for board in mine}
    with_it = [board for board, known in histories.items() if any(k.benchmark == benchmark for k in known)]
    if "" in mine or len(with_it) != 1:
        return ""
    known = histories[with_it[0]]
    alike = unlike = 0
    figures = [(row.case, f) for row in rows.read(source, found, "").rows for _, f in row.figures]
    for case, figure in figures:
        series = known.get(Key(benchmark, case, figure.metric), {})
        means = [mean for _, unit, mean in series.values() if unit == figure.unit]
        if means:
            near = min(means) / _LIKE <= figure.mean <= max(means) * _LIKE
            alike, unlike = alike + near, unlike + (not near)
    sure = alike > _OFTEN * unlike and alike >= _MANY
    return with_it[0] if sure or not figures else ""


def of_table(source: SourceTable, found: Match, boards: Boards, os: str) -> Iterator[Problem]:
    """Remarks on a table below another board's heading, and on one that names no board."""
    mine = {_squeezed(board) for board in found.boards}
    others = {_squeezed(board) for board in (*boards.names, *identity.known())} - mine
    for heading in source.section:
        if len(text := _squeezed(heading)) < _HEADING:
            continue
        if (
            mine
            and any(other.startswith(text) for other in others)
            and not any(board.startswith(text) for board in mine)
        ):
            reason = f"stands below {heading!r} and is headed {', '.join(found.boards)}"
            yield Problem(source.line, f"{found.table.benchmark}: {reason}", kept=True)
    board = "" if found.boards else headed(source, boards)
    if not found.boards and not board:
        board = published(source, found, boards, os)
        reason = f"{found.table.benchmark}: it names no board; of the guide's, only {board} has such figures"
        yield Problem(source.line, reason, kept=True)
    elif board and found.table.board_in_header:
        reason = f"{found.table.benchmark}: its header names no board; taken as {board}'s"
        yield Problem(source.line, reason, kept=True)


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
