"""Is a candidate like the good version or like the bad one? One step of a bisection.

Good, bad and candidate are measured in turn, in random order within blocks, so that a board's day
is in all three. What counts is where the candidate lies between the two: below their middle or
above. The evidence is Wald's sequential probability ratio (Annals of Mathematical Statistics 16,
1945) of "the candidate is the bad one" against "it is the good one", for noise of Student's t with
four degrees of freedom, so that one odd boot does not decide; the difference between good and bad,
and the noise, are those of all blocks of that night so far. It may be looked at after each block.

How often a bisection names the wrong change: `python -m selftests.regress.simulate_bisect`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.model import anytime

ERROR = 0.005
"""Chance that a step calls a good version bad, or the other way round: a bisection of 256 versions
has eight steps.
"""
_DEGREES = 4.0
_FLOOR = 1e-3
"""Least relative noise believed."""
_FEWEST = 2
"""Blocks below which a candidate is neither, however clear it seems."""


@dataclass(frozen=True)
class Reference:
    """What is known of good and bad: the logarithm of bad over good, and the noise of one value
    (scale of its logarithm).
    """

    difference: float
    noise: float


@dataclass(frozen=True)
class Likeness:
    """What is known of a candidate: `bad` is the probability that it is like the bad version, half
    when nothing is known.
    """

    bad: float
    blocks: int

    @property
    def decided(self) -> bool:
        """Whether it is known well enough."""
        return self.blocks >= _FEWEST and not ERROR < self.bad < 1 - ERROR


Triple = tuple[float, float, float]
"""Values of good, bad and candidate in one block."""


def reference(pairs: Sequence[tuple[float, float]]) -> Reference:
    """Good and bad in turn; raises ValueError for none."""
    logarithms = [math.log(bad / good) for good, bad in pairs]
    middle = anytime.centre(logarithms)
    off = [abs(value - middle) for value in logarithms]
    # The median of |t| with four degrees of freedom is 0.741 scales; a difference has two noises.
    spread = statistics.median(off) / 0.741
    few = statistics.fmean(off) * 1.1
    noise = max(spread, few if len(off) < 8 else 0.0) / math.sqrt(2)
    return Reference(middle, max(noise, _FLOOR))


def likeness(triples: Sequence[Triple], known: Reference) -> Likeness:
    """Where a candidate belongs, from the blocks in which it was measured."""
    half = known.difference / 2
    # The middle of good and bad has half of one value's variance, the candidate all of it.
    scale = known.noise * math.sqrt(1.5)
    odds = 0.0
    for good, bad, candidate in triples:
        off = math.log(candidate) - (math.log(good) + math.log(bad)) / 2
        odds += _log_density((off - half) / scale) - _log_density((off + half) / scale)
    return Likeness(1 / (1 + math.exp(-max(-700.0, min(odds, 700.0)))), len(triples))


def _log_density(value: float) -> float:
    """Student's t, but for a constant."""
    return -(_DEGREES + 1) / 2 * math.log1p(value * value / _DEGREES)
