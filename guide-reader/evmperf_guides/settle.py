"""What the words of a table leave open, and the rest of its guide and the record of a board tell: which of
two tables one without a caption is, and whose figures a table or a short row has.
"""

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evmperf.judge.published import identity, record, scatter
from evmperf.model.figures import Key
from evmperf.model.results import Published
from evmperf_guides import match, rows
from evmperf_guides.match import Match, Settled, split_header
from evmperf_guides.source import Problem, ReadingNotes, Source, SourceTable

_ALIKE = 0.85
"""difflib's ratio of names that a slip of the hand may have made of each other."""
_HEADING = 4
"""Letters and digits of the shortest heading that may be a board."""
_RARE = 0.2
"""A name that stands in at most this share of the tables of a name like it is misspelt."""
_LIKE = 1.5
"""A factor within which figures of one board in two releases are alike."""
_MANY = 8
"""Figures that must be alike: boards with one kind of chip have a few in common, as latencies."""
_OFTEN = 3
"""How often as many must be alike as are not."""
_LOAD, _MOVED = "cpu_load", "throughput"
_LOADED = 1.2
"""A factor above the highest load of a board that it does not reach: of full rows none is at 1.1."""
_HEADERS, _PAYLOAD = 46, 1472
"""Bytes of a frame beside its datagram, and of the largest datagram in one."""
_NEAR, _FAR = 1.2, 1.7
"""Factors within which what is a board's own is, and beyond which it is another's."""
_FEW = 2
"""Rows of a board that tell what is its own."""
_MOST_BOARDS = 10
"""Boards of a table whose short rows are looked at: each set of them is tried."""
_DIGITS = 4
"""Digits of figures with decimals that two boards do not have in common by chance."""


@dataclass(frozen=True)
class Boards:
    """The boards of a guide, the only one if `lone`, and those in its list of evaluation modules."""

    names: tuple[str, ...]
    lone: str
    misspelt: tuple[str, ...]
    problems: tuple[Problem, ...]
    modules: frozenset[str]
    title: str = ""

    def called(self, board: str) -> str:
        """A board by its name in this guide."""
        return next((name for name in self.names if identity.same(name, board)), board)


def boards(source: Source, given: str = "") -> Boards:
    """The boards that the headers of a guide name; tables that name none are the `given` one's, or
    that of the guide's only board, or of the only one in its list of evaluation modules.
    """
    lines: dict[str, list[int]] = {}
    for table in source.tables:
        for board in {split_header(text)[0] for text in table.header} - {""}:
            lines.setdefault(board, []).append(table.line)
    misspelt, problems = [], []
    for board, at in lines.items():
        often = [o for o, places in lines.items() if len(at) <= max(1, _RARE * len(places)) < len(places)]
        near = difflib.get_close_matches(board, often, n=1, cutoff=_ALIKE)
        if near and board not in identity.names():
            misspelt.append(board)
            rare = f"the board {board!r} is in {len(at)} of the tables and resembles {near[0]!r}"
            problems.append(Problem(at[0], f"{rare}: its figures are not read"))
    names = tuple(board for board in lines if board not in misspelt)
    modules = frozenset(identity.of_module(module) for module in source.modules)
    known = names or tuple(modules)
    lone = known[0] if len(known) == 1 else ""
    return Boards(names, given or lone, tuple(misspelt), tuple(problems), modules, source.title)


_Reading = Mapping[str, Sequence[Published]]
"""The figures of a row, by board."""
_OfBoard = Sequence[tuple[str, Sequence[Published]]]
"""Case and figures of the rows of one board."""


def _readings(fit: Match, case: str, cells: Sequence[str]) -> list[_Reading]:
    """The ways to read a row that lacks the cells of some boards; [] where a cell is no figure."""
    found: list[_Reading] = []
    counts = range(1, len(fit.boards))
    for boards in itertools.chain(*(itertools.combinations(fit.boards, count) for count in counts)):
        columns = [column for column in fit.columns if column.board in boards]
        if len(columns) != len(cells):
            continue
        reading: dict[str, list[Published]] = {board: [] for board in boards}
        try:
            for column, text in zip(columns, cells, strict=True):
                reading[column.board] += rows.figures(fit.table, column, case, text, 0) if text else ()
        except rows.CellError:
            return []
        found.append(reading)
    return found


def _own(fit: Match, case: str, figures: Iterable[Published]) -> float:
    """What of a row is its board's own whatever the frames' size: what a frame costs to send, and the load of
    receiving more than can be; 0 where the row does not tell.
    """
    means = {figure.metric: figure.mean for figure in figures}
    load, moved = means.get(_LOAD, 0.0), means.get(_MOVED, 0.0)
    if moved <= 0 or not re.fullmatch("[0-9]{2,5}", case):
        return 0.0
    if "_egress" in fit.table.benchmark:
        size = int(case) - (_HEADERS if "datagram_size" in fit.table.columns else 0)
        return load / moved * max(size, 0) / math.ceil(max(size, 1) / _PAYLOAD)
    return load if fit.table.benchmark.endswith("ingress_loss") else 0.0


def _off(fit: Match, case: str, figures: Sequence[Published], others: _OfBoard, highest: float) -> float:
    """The factor by which what is a board's own is off its other rows; infinite for what it cannot have: a
    load far above its highest, a figure in a column that it else leaves empty.
    """
    filled = Counter(figure.metric for _, of_row in others for figure in of_row)
    for figure in figures:
        is_filled = filled[figure.metric] or filled[_MOVED] <= _FEW
        if not is_filled or (figure.metric == _LOAD and figure.mean > _LOADED * highest):
            return math.inf
    own = _own(fit, case, figures)
    known = [one for row, of_row in others if (one := _own(fit, row, of_row))]
    return max(1.0, own / max(known), min(known) / own) if own and len(known) >= _FEW else 1.0


class Witness:
    """The record, asked for the boards of one guide; that guide's own figures are no witnesses."""

    def __init__(self, os: str, guide: str, release: str, named: Boards) -> None:
        self.os, self.guide, self.release, self.named = os, guide, record.same_time(release), named
        self._alone: dict[tuple[str, ...], str] = {}
        """Boards of tables that name none, by their outer heading."""
        self.tables: Sequence[rows.TableRows] = ()
        """All tables of the guide: those of one test lack the same boards."""

    def _history(self, board: str) -> scatter.History:
        return scatter.history(identity.board(board), self.os, self.guide)

    def board(self, source: SourceTable, fit: Match) -> str:
        """The only one of a guide's boards that the record has this table of, in the release with it that is
        next to the guide's, if its figures are like those there (a guide that only gives the layout has
        none); where the record has it of none, the board of a table before it, below its outer heading, that
        was so found. "" where there is no such board, or where the list has a name that is not known.
        """
        mine = {identity.board(name) for name in (*self.named.names, *self.named.modules)}
        with_it = [board for board, _ in self._nearest((name, fit.table.benchmark) for name in mine)]
        if "" in mine or len(with_it) > 1:
            return ""
        if with_it and self._alike(source, fit, with_it[0]):
            self._alone[source.section[:1]] = with_it[0]
        board = self._alone.get(source.section[:1], "")
        return board if with_it in ([], [board]) else ""

    def _nearest(self, tables: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The boards' tables that the record has in the release next to the guide's."""
        times: dict[tuple[str, str], set[tuple[int, ...]]] = {}
        for board, name in tables:
            of_table = (series for key, series in self._history(board).items() if key.benchmark == name)
            times[board, name] = {time for series in of_table for time in series}

        def apart(time: tuple[int, ...]) -> list[int]:
            pairs = itertools.zip_longest(time, self.release, fillvalue=0)
            return [abs(one - other) for one, other in pairs]

        nearest = min((time for releases in times.values() for time in releases), key=apart, default=None)
        return [table for table, releases in times.items() if nearest in releases]

    def table(self, source: SourceTable, candidates: Sequence[Match]) -> Match | None:
        """The only one of several tables that the record, next to the release, has of all boards."""
        names = {match.table.benchmark: match for match in candidates}
        per_board = [self._nearest((board, name) for name in names) for board in candidates[0].boards]
        which = {name for tables in per_board for _, name in tables}
        if len(which) != 1 or any(len(tables) != 1 for tables in per_board):
            return None
        fit = names[which.pop()]
        return fit if self._alike(source, fit, "") else None

    def _alike(self, source: SourceTable, fit: Match, lone: str) -> bool:
        """Whether a table's figures are like those of its boards, or it has none."""
        of_table = rows.read(rows.TableRows(source, fit, ReadingNotes(), lone=lone)).rows
        near = []
        for case, board, figure in ((row.case, board, f) for row in of_table for board, f in row.figures):
            series = self._series(fit, case, figure.metric, board)
            if means := [mean for _, unit, mean in series.values() if unit == figure.unit]:
                near.append(min(means) / _LIKE <= figure.mean <= max(means) * _LIKE)
        alike = sum(near)
        none = not any(row.figures for row in of_table)
        return none or (alike > _OFTEN * (len(near) - alike) and alike >= _MANY)

    def _series(self, fit: Match, case: str, metric: str, board: str) -> scatter.Series:
        return self._history(board).get(Key(fit.table.benchmark, case, metric), {})

    def place(self, done: rows.TableRows, case: str, cells: Sequence[str]) -> tuple[list[str], str]:
        """The cells of a row that lacks those of some boards, in their columns, and how that is known:
        another guide of the release has them so, or, of UDP, all readings agree that fill no column which a
        board leaves empty and that no load contradicts, here and in the same row of the test's other table.
        [] and "" for a row of which nothing is known, and for a table of very many boards.
        """
        fit = done.match
        if len(fit.boards) > _MOST_BOARDS:
            return [], ""
        readings, how = _readings(fit, case, cells), "as in another guide of the release"
        fitting = [one for one in readings if all(self._printed(fit, case, *mine) for mine in one.items())]
        if len(fitting) != 1:
            fitting = self._carried(done, case, readings) if "_udp_" in fit.table.benchmark else []
            how = "by what loads and columns its boards have"
        row = [""] * len(fit.columns)
        columns = [[n for n, one in enumerate(fit.columns) if one.board in reading] for reading in fitting]
        for number, cell in enumerate(cells):
            if len(places := {of_reading[number] for of_reading in columns}) == 1:
                row[places.pop()] = cell
        return (row, how) if any(row) else ([], "")

    def _carried(self, done: rows.TableRows, case: str, readings: Sequence[_Reading]) -> list[_Reading]:
        """The readings that no board's load contradicts, here and in the test's other table."""
        possible = self._loaded(done, case, readings)
        for twin in self.tables:
            # One run of a test prints two tables, with no loss and with some.
            tests = {re.sub("_0?loss$", "", one.match.table.benchmark) for one in (twin, done)}
            same = len(tests) == 1 and twin.match.boards == done.match.boards
            for row in twin.short if same and twin.match.table != done.match.table else ():
                if match.row_key(row.cells, twin.match.table)[0] == case:
                    of_twin = _readings(twin.match, case, row.cells[len(twin.match.table.keys) :])
                    theirs = {tuple(reading) for reading in self._loaded(twin, case, of_twin)}
                    if {len(boards) for boards in theirs} == {len(reading) for reading in possible}:
                        possible = [reading for reading in possible if tuple(reading) in theirs]
        return possible

    def _loaded(self, done: rows.TableRows, case: str, readings: Sequence[_Reading]) -> list[_Reading]:
        """The readings in which no board has what it cannot have; of these those in which all have what is
        their own in the table's other rows, where in every other one has not by far.
        """
        others = {board: done.of_board(board) for board in done.match.boards}
        highest = {board: self._highest(done.match, board, mine) for board, mine in others.items()}
        factors = [
            max(_off(done.match, case, mine, others[board], highest[board]) for board, mine in one.items())
            for one in readings
        ]
        possible = [factor for factor in factors if factor < math.inf]
        is_clear = min(possible, default=0) <= _NEAR and not any(_NEAR < one <= _FAR for one in possible)
        most = _NEAR if is_clear else max(possible)
        return [reading for reading, factor in zip(readings, factors, strict=True) if factor <= most]

    def _printed(self, fit: Match, case: str, board: str, figures: Sequence[Published]) -> bool:
        """Whether another guide of the release has all these figures of a board, if any, not by chance."""
        digits = "".join(f"{f.mean:g}".replace(".", "") for f in figures if f.mean % 1)
        series = [self._series(fit, case, f.metric, board).get(self.release) for f in figures]
        same = all(s and s[1:] == (f.unit, f.mean) for s, f in zip(series, figures, strict=True))
        return not figures or (same and len(figures) > 1 and len(digits) >= _DIGITS)

    def _highest(self, fit: Match, board: str, others: _OfBoard) -> float:
        """The highest load of a board, which its number of cores sets, in the table's other rows and in all
        UDP tables of the port in the record, as not all of them keep it busy; infinite where few tell.
        """
        port = fit.table.benchmark.partition("_udp_")[0]
        here = [f.mean for _, of_row in others for f in of_row if f.metric == _LOAD]
        loads = ((key, series) for key, series in self._history(board).items() if key.metric == _LOAD)
        tables = (series for key, series in loads if key.benchmark.partition("_udp_")[0] == port)
        printed = [mean for series in tables for _, _, mean in series.values()]
        return max(*here, *printed) if here and len(printed) >= _MANY else math.inf


def tables(sources: Sequence[SourceTable], witness: Witness) -> list[Settled]:
    """What each table of a guide is."""
    settled = [match.identify(table) for table in sources]
    # Without captions, tables that may be any of as many stand in the order of all guides.
    numbers = [n for n, one in enumerate(settled) if one.candidates]
    both = zip(sources, settled, strict=True)
    places = [(source.section, source.rubric, [m.table for m in one.candidates]) for source, one in both]
    for mine in (list(group) for _, group in itertools.groupby(numbers, places.__getitem__)):
        for place, number in enumerate(mine):
            candidates = settled[number].candidates
            if by_record := witness.table(sources[number], candidates):
                why = "no caption, and next to this release its boards have only that, with such figures"
                settled[number] = Settled(by_record, why)
            elif len(mine) == len(candidates) and not any(sources[n].caption for n in mine):
                why = f"no caption; the {len(mine)} tables like it are taken in the order of all guides"
                settled[number] = Settled(candidates[place], why)
    return settled


def headed(source: SourceTable, named_boards: Boards) -> str:
    """The board of a table whose header names none: the guide's only one, or that of a heading, of
    a note below it, or of the guide's title; "" for none.
    """
    for words in (*source.section, source.rubric, source.name):
        if len(named := _begun(words, named_boards.names)) == 1:
            return named[0]
        if board := identity.of_module(words):
            return named_boards.called(board)
    if named_boards.lone:
        return named_boards.lone
    own = {identity.board(name) for name in (*named_boards.names, *named_boards.modules)}
    for words in (source.below, named_boards.title):
        said = mentioned(words)
        if len(mine := said & own if own else said) == 1:
            return named_boards.called(mine.pop())
    return ""


def mentioned(text: str) -> set[str]:
    """The boards that a sentence names, or whose modules; of a name within another, the longer."""
    names = sorted(identity.called(), key=len, reverse=True)
    found = re.findall(rf"\b({'|'.join(names)})\b", identity.plain(text))
    return {identity.called()[name] for name in found}


def remarks(source: SourceTable, fit: Match, named_boards: Boards, lone: str) -> Iterator[str]:
    """Doubts about a table's boards: it is below another's heading, or names none and is taken as `lone`."""
    others = {*named_boards.names, *identity.names()} - {*fit.boards}
    for heading in source.section if fit.boards else ():
        if _begun(heading, others) and not _begun(heading, fit.boards):
            yield f"is below {heading!r}, but its header names {', '.join(fit.boards)}"
    board = "" if fit.boards else headed(source, named_boards)
    if not fit.boards and not board:
        yield f"it names no board; of the guide's, only {lone} has such figures, here or in a table beside it"
    elif board and fit.table.board_in_header:
        yield f"its header names no board; taken as {board}'s"


def _begun(heading: str, names: Collection[str]) -> list[str]:
    """The boards whose names begin with the letters and digits of a heading."""
    text, *of_names = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (heading, *names))
    begun = (len(text) >= _HEADING and name.startswith(text) for name in of_names)
    return [*itertools.compress(names, begun)]
