"""Labs for judging verdicts: noise that is made, and series of a machine that measured."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Generator = np.random.Generator
CV = 0.02
"""Standard deviation of every kind, as a share of its level."""
_WARM_UP = 50


def _independent(random: Generator, metrics: int, nights: int) -> Matrix:
    return random.standard_normal((metrics, nights))


def _correlated(share: float) -> Callable[[Generator, int, int], Matrix]:
    """An autoregression of first order."""

    def make(random: Generator, metrics: int, nights: int) -> Matrix:
        values = random.standard_normal((metrics, nights + _WARM_UP))
        for night in range(1, values.shape[1]):
            values[:, night] *= np.sqrt(1 - share**2)
            values[:, night] += share * values[:, night - 1]
        return values[:, _WARM_UP:]

    return make


def _shared(random: Generator, metrics: int, nights: int) -> Matrix:
    """Half of the variance is the board's day, alike in all metrics."""
    day = random.standard_normal((1, nights))
    return np.asarray((random.standard_normal((metrics, nights)) + day) / np.sqrt(2))


def _two_levels(random: Generator, metrics: int, nights: int) -> Matrix:
    levels = 2 * (random.random((metrics, nights)) < 0.5) - 1
    return np.asarray(levels + 0.1 * random.standard_normal((metrics, nights)))


def _rare_level(random: Generator, metrics: int, nights: int) -> Matrix:
    levels = 2.4 * (random.random((metrics, nights)) < 0.2)
    return np.asarray(levels + 0.3 * random.standard_normal((metrics, nights)))


def _outliers(random: Generator, metrics: int, nights: int) -> Matrix:
    odd = random.random((metrics, nights)) < 0.03
    return np.asarray(0.8 * random.standard_normal((metrics, nights)) - 5 * odd)


def _heavy(random: Generator, metrics: int, nights: int) -> Matrix:
    return np.asarray(random.standard_t(3, (metrics, nights)) / np.sqrt(3))


def _spreading(random: Generator, metrics: int, nights: int) -> Matrix:
    spread = np.linspace(0.7, 1.3, nights)
    return np.asarray(spread * random.standard_normal((metrics, nights)))


def _mixed(random: Generator, metrics: int, nights: int) -> Matrix:
    """Metrics of different spreads, every other one correlated."""
    values = _independent(random, metrics, nights)
    values[::2] = _correlated(0.6)(random, metrics, nights)[::2]
    return np.asarray(np.exp(0.7 * random.standard_normal((metrics, 1)) - 0.5) * values)


KINDS: dict[str, Callable[[Generator, int, int], Matrix]] = {
    "independent": _independent,
    "correlated (AR 0.3)": _correlated(0.3),
    "correlated (AR 0.6)": _correlated(0.6),
    "half shared by all metrics": _shared,
    "two levels": _two_levels,
    "two levels, one rare": _rare_level,
    "odd nights, 3 %": _outliers,
    "heavy tails (t, 3 degrees)": _heavy,
    "spread that doubles": _spreading,
    "spreads from 0.5 to 4 %, half AR 0.6": _mixed,
}


def made(kind: str, random: Generator, metrics: int, nights: int) -> Matrix:
    """Figures around 100 of a lab in which nothing changes, a row a metric."""
    return 100 * np.maximum(1 + CV * KINDS[kind](random, metrics, nights), 0.05)


def machine(file: Path) -> Iterator[tuple[str, Matrix]]:
    """The series of each setup that cover all of its runs, a row each, a column a run. What a
    series lacks is as the run before; lower is better.
    """
    with gzip.open(file, "rt") as lines:
        entries = [json.loads(line) for line in lines]
    for setup in sorted({entry["setup"] for entry in entries}):
        mine = [entry for entry in entries if entry["setup"] == setup]
        ((length, _),) = Counter(len(entry["hours"]) for entry in mine).most_common(1)
        longest = max(mine, key=lambda entry: len(entry["hours"]))
        grid = np.array(longest["hours"])
        rows = []
        for entry in mine:
            if not 0.95 * length <= len(entry["hours"]) or abs(entry["hours"][-1] - grid[-1]) > 6:
                continue
            row = np.full(len(grid), np.nan)
            hours = np.array(entry["hours"])
            row[np.abs(grid[None] - hours[:, None]).argmin(axis=1)] = entry["value"]
            known = np.flatnonzero(np.isfinite(row))
            rows.append(row[known[np.searchsorted(known, np.arange(len(grid)), "right") - 1]])
        yield setup, np.array(rows)
