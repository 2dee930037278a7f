"""Published figures that their board's other releases show to be wrong: far off an otherwise steady
history. They are shown, and nothing builds on them.
"""

import functools
import itertools
import statistics
from collections.abc import Mapping

from evmperf.judge.published import identity, record, source
from evmperf.measure.state import buses
from evmperf.model.figures import Figure, Key
from evmperf.model.run import Run
from evmperf_guides import artefacts

Series = Mapping[tuple[int, ...], tuple[str, str, float]]
"""Release, unit and mean by a release's numbers."""
History = Mapping[Key, Series]
_ENOUGH = 3
"""Other releases that make a history."""
_MANY = 10
"""Changes between releases that make a scatter."""
_STEADY = 1.3
"""How far the others may be from their middle, as a factor, in at least this share of them:"""
_MOST_OF_THEM = 0.8
_WITHIN = 1.5
"""How far they may be from each other where they are not."""
_OFF = 2.5
"""A factor beyond which a figure is out of line."""
_POINT = 0.12
"""How near to 10 or 100 the factor of a lost decimal point is."""


def doubts(run: Run, figures: Mapping[Key, Figure]) -> dict[Key, str]:
    """Why figures of a run are not judged, by key: by figures beside them or the board's other releases."""
    reasons = artefacts.doubts(figures)
    is_guide = run.kind == source.KIND
    if not is_guide and not any(figure.published for figure in figures.values()):
        return reasons
    by_figure = history(identity.board(run.board), run.os)
    for key, figure in figures.items():
        if key in reasons or not (is_guide or figure.published):
            continue
        # What no bus carries: a cache was measured, or a digit is wrong.
        why = buses.impossible(*key, unit=figure.unit, mean=figure.mean, board=run.board)
        if not why and (series := by_figure.get(key)):
            why = out_of_line(figure.mean, figure.unit, series, record.same_time(run.release))
        reasons |= {key: why} if why else {}
    return reasons


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


@functools.cache
def scatter(board: str, os: str, benchmark: str, metric: str) -> float | None:
    """How much a metric of a board differs from release to release: the relative change that nine in ten are
    below, over all rows of its table. None for fewer than ten changes: the record tells nothing.
    """
    changes = []
    for key, series in history(identity.board(board), os).items():
        if (key.benchmark, key.metric) == (benchmark, metric):
            points = [series[time] for time in sorted(series)]
            for (_, unit, before), (_, same, after) in itertools.pairwise(points):
                if unit == same and before > 0 and after > 0:
                    changes.append(abs(after / before - 1))
    return statistics.quantiles(changes, n=10)[-1] if len(changes) >= _MANY else None


@functools.cache
def history(board: str, os: str, without: str = "") -> History:
    """What the record has of a board, by figure; nothing of the guide (a file's name) `without`."""
    by_figure: dict[Key, dict[tuple[int, ...], tuple[str, str, float]]] = {}
    for entry in record.of_board(board, os):
        if entry.guide == without:
            continue
        time = record.same_time(entry.release)
        for case, value in record.values(entry):
            key = Key(case.benchmark, case.name, value.metric)
            by_figure.setdefault(key, {})[time] = (entry.release, value.unit, value.mean)
    return by_figure
