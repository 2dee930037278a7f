"""How much figures of a board differ from release to release, by the record."""

import functools
import itertools
import statistics
from collections.abc import Iterable, Mapping

from evmperf.judge.published import identity, record
from evmperf.judge.published.record import Entry
from evmperf.model.figures import Key

Series = Mapping[tuple[int, ...], tuple[str, str, float]]
"""Release, unit and mean by a release's numbers."""
History = Mapping[Key, Series]
_MANY = 10
"""Changes between releases that make a scatter."""


@functools.cache
def between_releases(board: str, os: str, benchmark: str, metric: str) -> float | None:
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
    return of_entries(entry for entry in record.of_board(board, os) if entry.guide != without)


def of_entries(entries: Iterable[Entry], *, doubtful: bool = True) -> History:
    """The figures of a board's entries, those that are `doubtful` too if wanted."""
    by_figure: dict[Key, dict[tuple[int, ...], tuple[str, str, float]]] = {}
    for entry in entries:
        time = record.same_time(entry.release)
        for case, value in record.values(entry):
            if doubtful or not value.doubt:
                key = Key(case.benchmark, case.name, value.metric)
                by_figure.setdefault(key, {})[time] = (entry.release, value.unit, value.mean)
    return by_figure
