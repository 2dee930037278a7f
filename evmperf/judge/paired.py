"""What blocks of A and B say of each metric: better, worse, same, or cannot tell.

A block holds one run of each side, in random order, so that warm-up, temperature and time of day
fall on all alike; only the difference within a block counts. Statistics: `evmperf.model.anytime`.
"""

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from evmperf.model import anytime
from evmperf.model.change import Change, Quantity
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.model.verdict import WITHIN_POINTS, Outcome, better_or_worse

WITHIN = 0.02
"""Change up to which two sides are the same, where nobody says otherwise."""
_FLOOR = 1e-3
"""Least relative spread of a difference that is believed."""
_FLOOR_POINTS = 0.05
_LARGEST = 700.0
"""Logarithm up to which a ratio is a finite number."""


Values = Mapping[Key, float]
"""What one run says: the mean of each metric's samples, in its unit."""
PairedBlock = tuple[Values, Values]
"""One run of each side, measured next to each other."""


def compare(
    blocks: Sequence[PairedBlock], quantities: Mapping[Key, Quantity], *, within: float = WITHIN
) -> list[Change]:
    """Every metric that both sides of some block have, the worst first. At any number of blocks
    the share of false alarms is `anytime.ALPHA` (see `anytime.discoveries`).
    """
    found = [_change(key, quantity, blocks, within) for key, quantity in quantities.items()]
    changes = [change for change in found if change]
    named = anytime.discoveries([change.evidence for change in changes])
    decided = [
        replace(change, decision=_decision(change, sure)) for change, sure in zip(changes, named, strict=True)
    ]
    order = {decision: number for number, decision in enumerate(Outcome)}
    return sorted(decided, key=lambda change: (order[change.decision], -abs(change.change)))


def _decision(change: Change, sure: bool) -> Outcome:
    if len(change.a) < anytime.FEWEST:
        return Outcome.UNKNOWN
    if -change.within <= change.low and change.high <= change.within:
        return Outcome.SAME
    if not sure or change.quantity.better is Direction.NONE:
        return Outcome.UNKNOWN
    return better_or_worse(change.change, change.quantity.better)


def _change(key: Key, quantity: Quantity, blocks: Iterable[PairedBlock], within: float) -> Change | None:
    pairs = [(a[key], b[key]) for a, b in blocks if key in a and key in b]
    if not pairs:
        return None
    a, b = (tuple(side) for side in zip(*pairs, strict=True))
    # How two values are compared, and what a middle of such comparisons is as a change.
    difference: Callable[[float, float], float] = operator.sub
    change: Callable[[float], float] = float
    floor, allowed = _FLOOR, within
    usual = statistics.median(abs(before) for before, _ in pairs)
    if quantity.unit == Unit.PERCENT:
        floor, allowed = _FLOOR_POINTS, max(WITHIN_POINTS, within * usual)
    elif all(before > 0 and after > 0 for before, after in pairs):
        # A ratio is as far from 1 either way.
        difference, change = (lambda after, before: math.log(after / before)), _relative
    else:
        pairs = [(before / (usual or 1.0), after / (usual or 1.0)) for before, after in pairs]
    differences = [difference(after, before) for before, after in pairs]
    low, high = map(change, anytime.interval(differences, floor))
    middle = change(anytime.centre(differences))
    enough = len(pairs) >= anytime.FEWEST
    strength = anytime.evidence(differences, 0.0, floor) if enough else 1.0
    return Change(key, quantity, a, b, middle, low, high, strength, allowed)


def differ(pairs: Iterable[tuple[float, ...]]) -> float:
    """The evidence that the second of each pair is another than the first (both above 0)."""
    return anytime.evidence([math.log(after / before) for before, after in pairs], 0.0, _FLOOR)


def _relative(logarithm: float) -> float:
    return math.expm1(logarithm) if logarithm < _LARGEST else math.inf
