"""Noise that boards and labs make, for simulations.

Each kind is a series of 2 n values in the order of measuring, around 1, of which the spread from
one to the next is about `CV`; some drift or have tails, steps or few distinct values.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evmperf.judge.paired import Quantity
from evmperf.model.figures import Key
from evmperf.model.results import Direction

CV = 0.02
Series = NDArray[np.float64]
Generator = np.random.Generator


def _normal(random, count):
    return CV * random.standard_normal(count)


def _heavy(random, count):
    return CV * random.standard_t(3, count) / np.sqrt(3)


def _skewed(random, count):
    return CV * (random.lognormal(0, 1, count) - 1)


def _outliers(random, count):
    return CV / 2 * random.standard_normal(count) + 0.2 * (random.random(count) < 0.08)


def _two_levels(random, count):
    return 0.05 * (random.random(count) < 0.5) + 0.002 * random.standard_normal(count)


def _quantised(random, count):
    return np.round(CV / 2 * random.standard_normal(count), 2)


def _warming(random, count):
    return CV * random.standard_normal(count) + np.linspace(0, 0.2, count)


def _wandering(random, count):
    steps = np.cumsum(CV / 2 * random.standard_normal(count))
    return np.asarray(CV / 2 * random.standard_normal(count) + steps)


KINDS: dict[str, Callable[[Generator, int], Series]] = {
    "normal, 2 %": _normal,
    "heavy tails (Student's t, 3 degrees), 2 %": _heavy,
    "skewed (log-normal)": _skewed,
    "1 % with outliers of 20 %, one in twelve": _outliers,
    "two levels 5 % apart": _two_levels,
    "in steps of 1 %": _quantised,
    "2 %, warming up by 20 % in a night": _warming,
    "wandering (random walk of 1 % a run)": _wandering,
}

METRIC = Quantity("s", Direction.LOWER)


def keys(metrics):
    return [Key("boot_time", str(number), "boot_time") for number in range(metrics)]


def blocks(random, kind, count, *, metrics=1, change=0.0):
    """Blocks of A and B in random order; B's first metric is higher by `change`."""
    found = []
    names = keys(metrics)
    series = np.array([KINDS[kind](random, 2 * count) for _ in names])
    for number in range(count):
        pair = np.maximum(1 + series[:, 2 * number : 2 * number + 2], 0.01)
        if random.random() < 0.5:
            pair = pair[:, ::-1]
        a, b = pair[:, 0], pair[:, 1].copy()
        b[0] *= 1 + change
        found.append(
            (dict(zip(names, map(float, a), strict=True)), dict(zip(names, map(float, b), strict=True)))
        )
    return found
