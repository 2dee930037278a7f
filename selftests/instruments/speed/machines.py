"""Labs for judging verdicts: series of machines that measured, beside this checkout."""

import gzip
import itertools
import json
from collections import Counter
from dataclasses import dataclass

import numpy as np

from selftests.instruments.speed import peers
from selftests.instruments.speed.peers import Matrix
from selftests.support import seeds

_METRICS = 331
_LEVEL_NIGHTS = 5


@dataclass(frozen=True)
class Lab:
    """Series of a machine: a row a metric, seconds."""

    name: str
    values: Matrix

    def shuffled(self, random, nights):
        """Some nights in a random order, the same of each metric."""
        first = int(random.integers(0, self.values.shape[1] - nights + 1))
        return self.values[:, first + random.permutation(nights)].copy()


def labs(half, *, levelled=True):
    """Those of the even (0) or odd (1) series of each recorded machine."""
    level = _levelled if levelled else np.asarray
    random = np.random.default_rng(20261124)
    for name, values in _recorded():
        mine = values[half::2]
        yield Lab(name, level(mine[np.sort(random.permutation(len(mine))[:_METRICS])]))


def _levelled(values):
    """Without changes of level: each level of at least _LEVEL_NIGHTS nights is that of all."""
    for row, ((_, points),) in zip(values, peers.change_points(values, [values.shape[1]], 1), strict=True):
        whole = np.median(row)
        ends = [0, *points, len(row)]
        for first, last in itertools.pairwise(ends):
            if last - first >= _LEVEL_NIGHTS:
                row[first:last] *= whole / np.median(row[first:last])
    return values


def _recorded():
    """All series by machine."""
    for file in seeds.real("series", "*.jsonl.gz"):
        for setup, values in _of_setups(file):
            yield f"{file.name.partition('.')[0]} {setup[-5:-2]}", values
    for file in seeds.real("series-2", "*.npz"):
        values = np.load(file)["X"].astype(float)
        yield file.stem, _filled(values[np.isnan(values).mean(axis=1) < 0.05])


def _of_setups(file):
    """The series of each setup that cover all of its runs, a row each, a column a run; lower is better."""
    with gzip.open(file, "rt") as lines:
        entries = [json.loads(line) for line in lines]
    for setup in sorted({entry["setup"] for entry in entries}):
        mine = [entry for entry in entries if entry["setup"] == setup]
        ((length, _),) = Counter(len(entry["hours"]) for entry in mine).most_common(1)
        grid = np.array(max((entry["hours"] for entry in mine), key=len))
        rows = []
        for entry in mine:
            hours = np.array(entry["hours"])
            if 0.95 * length <= len(hours) and abs(hours[-1] - grid[-1]) <= 6:
                rows.append(np.full(len(grid), np.nan))
                rows[-1][np.abs(grid[None] - hours[:, None]).argmin(axis=1)] = entry["value"]
        yield setup, _filled(np.array(rows))


def _filled(values):
    """A tool that must have each value gets the one before, at first the first."""
    for row in values:
        known = np.flatnonzero(np.isfinite(row))
        row[:] = row[known[np.maximum(np.searchsorted(known, np.arange(len(row)), "right") - 1, 0)]]
    return values
