"""The throughput test of RFC 2544, section 26.1: the highest rate without a lost frame, searched by halving a
logarithmic scale from a floor to the maximum.
"""

import itertools
import math
from collections.abc import Callable, Generator

from evmperf.benchmarks.step import Trial
from evmperf.model.results import Reading

FLOOR = 1e-4
"""The lowest rate tried, as a part of the maximum."""

METHOD = (
    "RFC 2544 section 26.1: first the link's own rate; then the geometric mean of the highest rate "
    "that lost nothing and the lowest that lost something, until they are within the resolution"
)


def search(
    maximum: float, resolution: float, trial: Callable[[int, float], Trial]
) -> Generator[Trial, list[Reading], dict[str, float]]:
    """Yield the trials (of a number and a rate), be sent their readings, `offered` and `lost` among them, and
    return those of the highest rate that passed by metric, {} if not even `maximum` * FLOOR passed.

    Stops when a rate passed and one at most `resolution` (0.01 is 1 %) higher did not, or when `maximum`
    passed. A sender slower than asked lowers the upper end to what it offered.
    """
    numbers = itertools.count(1)

    def tried(rate: float) -> Generator[Trial, list[Reading], dict[str, float]]:
        readings = yield trial(next(numbers), rate)
        return {reading.metric: reading.value for reading in readings}

    outcome = yield from tried(maximum)
    best, low = outcome if not outcome["lost"] else {}, maximum * FLOOR
    high = low if best else min(maximum, max(outcome["offered"], low))
    while high > low * (1 + resolution):
        rate = math.sqrt(low * high)
        outcome = yield from tried(rate)
        if outcome["lost"]:
            high = min(rate, max(outcome["offered"], low))
        else:
            low, best = rate, outcome
    if not best:
        outcome = yield from tried(low)
        best = outcome if not outcome["lost"] else {}
    return best


def most_trials(resolution: float) -> int:
    """How many trials a search takes at most."""
    return 2 + math.ceil(math.log2(math.log(1 / FLOOR) / math.log1p(resolution)))
