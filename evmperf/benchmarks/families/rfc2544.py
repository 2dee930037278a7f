"""The throughput test of RFC 2544, section 26.1: the highest rate without a lost frame, searched by halving a
logarithmic scale from a floor to the maximum.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass

FLOOR = 1e-4
"""The lowest rate tried, as a part of the maximum."""

METHOD = (
    "RFC 2544 section 26.1: first the link's own rate; then the geometric mean of the highest rate "
    "that lost nothing and the lowest that lost something, until they are within the resolution"
)


@dataclass(frozen=True)
class RateTrial:
    """One trial: the rate that the sender really offered, and whether nothing was lost."""

    offered: float
    passed: bool


def search(maximum: float, resolution: float) -> Generator[float, RateTrial, float | None]:
    """Yield the rates to try, be sent what became of each, and return the highest that passed.

    Rates are in any unit. Stops when a rate passed and one at most `resolution` (0.01 is 1 %) higher did not,
    when `maximum` passed, or, with None, when not even `maximum` * FLOOR passed. A sender slower than asked
    lowers the upper end to what it offered. Never takes more than `most_trials(resolution)`.
    """
    first = yield maximum
    if first.passed:
        return maximum
    passed, low = None, maximum * FLOOR
    high = min(maximum, max(first.offered, low))
    while high > low * (1 + resolution):
        rate = math.sqrt(low * high)
        trial = yield rate
        if trial.passed:
            low = passed = rate
        else:
            high = min(rate, max(trial.offered, low))
    if passed is None and (yield low).passed:
        passed = low
    return passed


def most_trials(resolution: float) -> int:
    """How many trials a search takes at most."""
    return 2 + math.ceil(math.log2(math.log(1 / FLOOR) / math.log1p(resolution)))
