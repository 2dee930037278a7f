"""Is a candidate like the good version or like the bad one? One step of a bisection.

Good, bad and candidate are measured in turn, in random order within blocks, so that a board's day
is in all three. The evidence against "like good" is the money of someone who bets as if the
candidate were like bad, from the candidate's difference to good; against "like bad" the other way
round. It is an e-value (sources in `evmperf.model.anytime`): it may be looked at after each block,
and reaches 200 for a wrong answer with a probability of at most 0.5 %. Half of the money each is
laid on

* the order: if the candidate is like good, the two are exchangeable within a block, and a bet on
  which of the two values is the candidate's cannot grow, whatever the noise and however it
  changes. But it pays at most double a block, so that eight blocks are needed at least;
* the size: the likelihood ratio of the difference, for noise 1.4 times as wide as it seems, in the
  blocks before the step or in its own, whichever has more. It decides after two or three blocks
  where the difference is many times the noise, and gains nothing where it is not.

The bets take noise of Student's t with four degrees of freedom, so that one odd boot does not
decide, and difference and noise from the blocks before the step. As few blocks may have flattered
either, the first half is spread over half the difference and twice the noise, too.

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
_BETS = ((1.0, 1.0), (0.5, 1.0), (1.0, 2.0), (0.5, 2.0))
"""What is bet on the order, as shares of the difference and of the noise that are believed."""
_WIDER = 1.4
"""How much wider than it seems the noise may be for a bet on the size."""
_FEWEST = 2
"""Blocks below which a candidate is neither, however clear it seems."""
_DEGREES = 4.0
_FLOOR = 1e-3
"""Least relative noise believed."""
_LARGEST = 700.0
"""Logarithm up to which evidence is a finite number."""


@dataclass(frozen=True)
class Reference:
    """What is known of good and bad: the logarithm of bad over good, and the noise of a difference
    of two such logarithms (its scale).
    """

    difference: float
    noise: float


@dataclass(frozen=True)
class Likeness:
    """What is known of a candidate: `bad` is how sure it is like the bad version, half when nothing
    is known; it is wrong with a probability of at most 1 - `bad`.
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
    # The median of |t| with four degrees of freedom is 0.741 scales.
    spread = statistics.median(off) / 0.741
    few = statistics.fmean(off) * 1.1
    return Reference(middle, max(spread, few if len(off) < 8 else 0.0, _FLOOR))


def likeness(triples: Sequence[Triple], known: Reference) -> Likeness:
    """Where a candidate belongs, from the blocks in which it was measured. `known` must come from
    other blocks than these: who bets must not know the outcome.
    """
    above_good = [math.log(candidate / good) for good, _, candidate in triples]
    below_bad = [math.log(bad / candidate) for _, bad, candidate in triples]
    now = max(known.noise, _noise_of(triples, known.difference))
    not_good, not_bad = (_evidence(off, known, now) for off in (above_good, below_bad))
    # Evidence e against something leaves it at most 1/e of a chance.
    good, bad = (math.exp(-max(0.0, min(e, _LARGEST))) for e in (not_good, not_bad))
    return Likeness(bad / (good + bad), len(triples))


def _noise_of(triples: Sequence[Triple], difference: float) -> float:
    """The noise of good and bad in these very blocks: a board may have become restless since."""
    off = [abs(math.log(bad / good) - difference) for good, bad, _ in triples]
    return statistics.fmean(off) * 1.1 if off else 0.0


def _evidence(off: Sequence[float], known: Reference, now: float) -> float:
    """The logarithm of the evidence that `off` scatters around the difference and not around 0;
    `now` is the noise that a bet on the size must take.
    """
    orders = [
        math.fsum(_order(value, share * known.difference, times * known.noise) for value in off)
        for share, times in _BETS
    ]
    size = math.fsum(_size(value, known.difference, _WIDER * now) for value in off)
    return _mean([_mean(orders), size])


def _mean(logarithms: Sequence[float]) -> float:
    """The logarithm of the mean of what these are the logarithms of."""
    most = max(logarithms)
    return most + math.log(math.fsum(math.exp(one - most) for one in logarithms) / len(logarithms))


def _order(value: float, difference: float, noise: float) -> float:
    """The logarithm of what a bet on one block's order pays: twice the probability of the order
    that came, given how far the two values are apart.
    """
    came = _log_density((value - difference) / noise)
    other = _log_density((-value - difference) / noise)
    return math.log(2) - math.log1p(math.exp(other - came))


def _size(value: float, difference: float, noise: float) -> float:
    """The logarithm of a likelihood ratio: of the difference against none."""
    return _log_density((value - difference) / noise) - _log_density(value / noise)


def _log_density(value: float) -> float:
    """Student's t, but for a constant."""
    return -(_DEGREES + 1) / 2 * math.log1p(value * value / _DEGREES)
