"""What the record knows of a board tells what a guide leaves open: whose figures a table or a short
row has, and which of two tables one without a caption is.
"""

import itertools
import math
from collections.abc import Sequence

from evmperf.guide import rows
from evmperf.guide.boards import Boards
from evmperf.guide.match import Match, MatchedColumn
from evmperf.guide.source import SourceTable
from evmperf.model.figures import Key
from evmperf.published import identity, record, steady

_LIKE = 1.5
"""A factor within which figures of one board in two releases are alike."""
_MANY = 8
"""Figures that must be alike: boards with one kind of chip have a few in common, as latencies."""
_OFTEN = 3
"""How often as many must be alike as are not."""
_SURE = 0.99
"""Probability of a place from which on a figure is read there."""
_SPREAD = 0.07
"""Typical difference of the logarithms of a figure in two releases of a board."""
_ANY = 0.1
"""Density of the logarithm of an outlier, in one of e**10 magnitudes."""
_OUTLIERS = 0.02
"""Share of figures that are like no other release's."""
_MOST = 40
"""Cells of a short row that are looked at."""
_DEPENDENT = 0.5
"""Throughput, packets and load of one row say one thing more than once."""


class Witness:
    """The record, asked for the boards of one guide; that guide's own figures are no witnesses."""

    def __init__(self, os: str, guide: str, release: str) -> None:
        self.os, self.guide, self.release = os, guide, record.same_time(release)

    def _history(self, board: str) -> steady.History:
        return steady.history(identity.board(board), self.os, self.guide)

    def board(self, source: SourceTable, found: Match, boards: Boards) -> str:
        """The only one of a guide's boards that the record has this table of, in the release with it
        that is next to the guide's, if its figures are like those there (a guide that only gives the
        layout has none); "" where there is no such board, or where the list has a name that is not
        known.
        """
        mine = {identity.board(name) for name in (*boards.names, *boards.modules)}
        times = {board: self._times(board, found.table.benchmark) for board in mine}
        nearest = min((time for there in times.values() for time in there), key=self._apart, default=())
        with_it = [board for board, there in times.items() if nearest in there]
        if "" in mine or len(with_it) != 1:
            return ""
        return with_it[0] if self._alike(source, found, with_it[0]) else ""

    def _times(self, board: str, benchmark: str) -> set[tuple[int, ...]]:
        """The releases that the record has a table of a board in."""
        known = self._history(board).items()
        return {time for key, series in known if key.benchmark == benchmark for time in series}

    def table(self, source: SourceTable, candidates: Sequence[Match]) -> Match | None:
        """The only one of several tables that all boards in the header have in the release of the
        record that is next to the guide's, if the figures are like those there.
        """
        there = []
        for board in candidates[0].boards:
            times = {match.table.benchmark: self._times(board, match.table.benchmark) for match in candidates}
            nearest = min((time for one in times.values() for time in one), key=self._apart, default=None)
            there.append([match for match in candidates if nearest in times[match.table.benchmark]])
        if there and all(matches == there[0] and len(matches) == 1 for matches in there):
            return there[0][0] if self._alike(source, there[0][0], "") else None
        return None

    def _apart(self, time: tuple[int, ...]) -> tuple[float, ...]:
        """How far a release is from the guide's, by their numbers."""
        pairs = itertools.zip_longest(time, self.release, fillvalue=0)
        return tuple(abs(one - other) for one, other in pairs)

    def _alike(self, source: SourceTable, found: Match, lone: str) -> bool:
        """Whether a table's figures are like those of its boards, or it has none."""
        alike = unlike = 0
        figures = [
            (row.case, board or lone, f)
            for row in rows.read(source, found, "").rows
            for board, f in row.figures
        ]
        for case, board, figure in figures:
            series = self._series(found, case, figure.metric, board)
            means = [mean for _, unit, mean in series.values() if unit == figure.unit]
            if means:
                near = min(means) / _LIKE <= figure.mean <= max(means) * _LIKE
                alike, unlike = alike + near, unlike + (not near)
        return not figures or (alike > _OFTEN * unlike and alike >= _MANY)

    def spread(self, found: Match, case: str, cells: Sequence[str]) -> dict[int, str]:
        """The cells of a row (without its keys) that lacks all those of some boards, by the column
        in which the boards' other figures surely put them; {} where they leave it open.
        """
        groups = [
            tuple(g)
            for _, g in itertools.groupby(range(len(found.columns)), lambda n: found.columns[n].board)
        ]
        if len(groups) != len(found.boards) or not 0 < len(cells) < len(found.columns) <= _MOST:
            return {}
        chosen = (c for n in range(1, len(groups)) for c in itertools.combinations(groups, n))
        fitting = [places for c in chosen if len(places := tuple(itertools.chain(*c))) == len(cells)]
        # Of a board without such a figure elsewhere nobody can say that this one is not its own.
        told = {
            c.metric
            for c in found.columns
            if all(self._series(found, case, c.metric, b) for b in found.boards)
        }
        weights: dict[tuple[int, ...], float] = {}
        for places in fitting:
            pairs = [(found.columns[n], text) for n, text in zip(places, cells, strict=True)]
            try:
                each = [self._weight(found, case, *pair) for pair in pairs if pair[0].metric in told]
            except ValueError:
                return {}
            weights[places] = math.exp(sum(each)) if each else 0.0
        total = sum(weights.values())
        sure: dict[int, str] = {}
        for number, text in enumerate(cells):
            for place in {places[number] for places in weights}:
                if sum(w for at, w in weights.items() if at[number] == place) > _SURE * total:
                    sure[place] = text
        return sure

    def _series(self, found: Match, case: str, metric: str, board: str) -> steady.Series:
        return self._history(board).get(Key(found.table.benchmark, case, metric), {})

    def _weight(self, found: Match, case: str, column: MatchedColumn, text: str) -> float:
        """The logarithm of how likely a board has such a figure, by its own in other releases; raises
        ValueError for a cell that is none.
        """
        (figure,) = rows.figures(found.table, column, case, text, 0)
        series = self._series(found, case, column.metric, column.board)
        there = [_scale(mean) for _, unit, mean in series.values() if unit == figure.unit]
        near = [math.exp(-abs(_scale(figure.mean) - one) / _SPREAD) / (2 * _SPREAD) for one in there]
        return _DEPENDENT * math.log((1 - _OUTLIERS) * sum(near) / max(len(there), 1) + _OUTLIERS * _ANY)


def _scale(mean: float) -> float:
    """What figures are compared by: small ones, loads of some percent, by their difference."""
    return math.log(max(mean, 0.0) + 1)
