"""Published figures that their board's other releases show to be wrong: far off an otherwise steady
history. They are shown, and nothing builds on them.
"""

import functools
import statistics
from collections.abc import Mapping

from evmperf.judge.published import identity, record, scatter
from evmperf.judge.published.scatter import History, Series
from evmperf.model.figures import Figure, Key
from evmperf.model.run import Run
from evmperf_guides import artefacts

_ENOUGH = 3
"""Other releases that make a history."""
_STEADY = 1.3
"""How far the others may be from their middle, as a factor, in at least this share of them:"""
_MOST_OF_THEM = 0.8
_WITHIN = 1.5
"""How far they may be from each other where they are not."""
_OFF = 2.5
"""A factor beyond which a figure is out of line."""
_POINT = 0.12
"""How near to 10 or 100 the factor of a lost decimal point is."""


def doubts(run: Run, figures: Mapping[Key, Figure], others: History | None = None) -> dict[Key, str]:
    """Why published figures of a run are not judged, by key: by figures beside them or the board's other
    releases (default: the record's).
    """
    reasons = artefacts.doubts(figures, run.board)
    others = beside(identity.board(run.board), run.os) if others is None else others
    time = record.same_time(run.release)
    for key, figure in figures.items():
        why = out_of_line(figure.mean, figure.unit, others.get(key, {}), time)
        if why and figure.published:
            reasons.setdefault(key, why)
    return reasons


@functools.cache
def beside(board: str, os: str) -> History:
    """What the record has of a board and does not doubt."""
    return scatter.of_entries(record.of_board(board, os), doubtful=False)


def out_of_line(mean: float, unit: str, series: Series, release: tuple[int, ...]) -> str:
    """How a figure is off its board's other releases; "" where it is not, or they tell nothing."""
    peers = [one for time, one in sorted(series.items()) if time != release and one[1] == unit]
    values = [value for _, _, value in peers]
    if len(values) < _ENOUGH or (middle := statistics.median(values)) <= 0:
        return ""
    near = [name for name, _, value in peers if middle / _STEADY <= value <= middle * _STEADY]
    few = len(near) < max(_ENOUGH, _MOST_OF_THEM * len(values))
    if few and not 0 < max(values) <= _WITHIN * min(values):
        return ""
    factor = mean / middle
    if 1 / _OFF <= factor <= _OFF:
        return ""
    names = list(dict.fromkeys(near))
    named = ", ".join(names) if len(names) <= _ENOUGH else f"{names[0]} to {names[-1]}"
    others = f"{middle:g} {unit} in {named}"
    for lost in (10, 100, 1000):
        if factor > 0 and abs(max(factor, 1 / factor) / lost - 1) < _POINT:
            return f"a decimal point may be lost: {mean:g}, and {others}"
    return f"{mean:g}, and {others}"
