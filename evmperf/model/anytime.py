"""Evidence and intervals that hold however often, and whenever, one looks at them.

`evidence` is an e-value: if nothing changed, it is at least 1/alpha with a probability of at most alpha *at
any time* (A. Ramdas, P. Grünwald, V. Vovk, G. Shafer, Game-theoretic statistics and safe anytime-valid
inference, Statistical Science 38, 2023). It is the mean of two:

* Student's, with a normal prior on change over noise and the right-Haar prior on the noise (M. Gönen and
  others, The Bayesian two-sample t test, American Statistician 59, 2005; H. Wang, A. Ramdas, Anytime-valid
  t-tests, 2023). Exact for normal noise; with heavier tails it grows more slowly.
* the sign test's, betting by Jeffreys' prior (R. Krichevsky, V. Trofimov, IEEE Trans. Inform. Theory 27,
  1981). Exact for whatever noise, as the sign of the difference of two measurements in random order is a fair
  coin.

How often it is wrong, and how soon it is right: `python -m selftests.instruments.simulate_ab`.
"""

import math
import statistics
from collections.abc import Callable, Sequence

ALPHA = 0.05
"""Share of false alarms, and of intervals that miss."""
FEWEST = 4
"""Values below which nothing is decided: with three, quantised noise repeats itself by chance."""

_PRIOR_VARIANCE = 5.0
"""Of the change in units of the noise: a change worth finding is some two times the noise."""
_PRECISION = 1e-9
_SHARE_FLOOR = 1e-3
"""Least noise of repetitions that is believed, as a share of their mean."""
_SHARE = 1e-4
"""How exactly the ends of an interval are found, as a share of its length."""
_DOUBLINGS = 30
_MANY = 60
_MOST_VALUES = 10_000
_LARGEST_EXPONENT = 700.0


def evidence(values: Sequence[float], centre: float = 0.0, floor: float = 0.0) -> float:
    """The evidence against `centre` as the middle of the values; `floor` is the least standard deviation that
    is believed, in their unit.
    """
    return (student(values, centre, floor) + signs(values, centre)) / 2


def student(values: Sequence[float], centre: float = 0.0, floor: float = 0.0) -> float:
    """The evidence for normal noise; 1 (none) for fewer than two values."""
    count = len(values)
    if count < 2:
        return 1.0
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    squares = max(squares, (count - 1) * floor**2)
    off = count * (mean - centre) ** 2
    if not squares:
        return 1.0 if not off else math.exp(_LARGEST_EXPONENT)
    wider = 1 + count * _PRIOR_VARIANCE
    ratio = off / squares
    logarithm = count / 2 * (math.log1p(ratio) - math.log1p(ratio / wider)) - math.log(wider) / 2
    return math.exp(min(logarithm, _LARGEST_EXPONENT))


def signs(values: Sequence[float], centre: float = 0.0) -> float:
    """The evidence from signs alone; values that equal `centre` say nothing."""
    above, below = sum(value > centre for value in values), sum(value < centre for value in values)
    ways = math.lgamma(above + 0.5) + math.lgamma(below + 0.5) - math.lgamma(above + below + 1)
    logarithm = (above + below) * math.log(2) + ways - math.log(math.pi)
    return math.exp(min(logarithm, _LARGEST_EXPONENT))


def interval(values: Sequence[float], floor: float = 0.0) -> tuple[float, float]:
    """All middles that the evidence does not speak against: it holds the true one at all times
    with a probability of 1 - ALPHA. Without an end where the values are too few to give one.
    """
    limit = 1 / ALPHA
    middle = centre(values)
    reach = max((abs(value - middle) for value in values), default=0.0)
    reach = max(reach, floor, abs(middle) * _PRECISION, _PRECISION)
    low = _edge(lambda distance: evidence(values, middle - distance, floor) < limit, reach)
    high = _edge(lambda distance: evidence(values, middle + distance, floor) < limit, reach)
    return middle - low, middle + high


def mean_interval(values: Sequence[float], floor: float = 0.0) -> tuple[float, float]:
    """The same for the mean of values with near-normal noise, from Student's evidence alone: the
    repetitions of one case, whose mean is what a guide prints.
    """
    count, mean = len(values), math.fsum(values) / len(values)
    squares = max(math.fsum((value - mean) ** 2 for value in values), (count - 1) * floor**2)
    reach = _reach(count, squares)
    return mean - reach, mean + reach


def _reach(count: int, squares: float) -> float:
    """The distance from the mean at which `student` reaches 1/ALPHA; infinite for too few values."""
    wider = 1 + count * _PRIOR_VARIANCE
    odds = (math.sqrt(wider) / ALPHA) ** (2 / count)
    if count < 2 or odds >= wider:
        return math.inf
    return math.sqrt((odds - 1) / (1 - odds / wider) * squares / count)


def values_needed(spread: float, within: float) -> int:
    """How many values of that standard deviation an interval of half the width `within` takes,
    about, where nothing changed; 10 000 stands for more than anybody measures.
    """
    counts = range(FEWEST, _MOST_VALUES)
    return next((n for n in counts if _reach(n, spread**2 * (n - 1)) <= within), _MOST_VALUES)


def half_width(values: Sequence[float]) -> float | None:
    """Half of the mean's interval as a share of the mean; None while there is none."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if len(values) < FEWEST or not mean:
        return None
    low, high = mean_interval(values, floor=_SHARE_FLOOR * abs(mean))
    share = (high - low) / 2 / abs(mean)
    return share if math.isfinite(share) else None


def _edge(inside: Callable[[float], bool], reach: float) -> float:
    """How far from the middle the interval goes; infinity where it does not end."""
    far = reach
    for _ in range(_DOUBLINGS):
        if not inside(far):
            break
        far *= 2
    else:
        return math.inf
    near = 0.0
    while far - near > _SHARE * far and far > reach * _SHARE:
        between = (near + far) / 2
        if inside(between):
            near = between
        else:
            far = between
    return far


def centre(values: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate: the median of all pairs' means (Annals of Mathematical Statistics 34,
    1963); of very many values their median. Raises ValueError for none.
    """
    if len(values) > _MANY:
        return statistics.median(values)
    return statistics.median((one + two) / 2 for index, one in enumerate(values) for two in values[index:])


def discoveries(evidences: Sequence[float]) -> list[bool]:
    """Which of many metrics changed, so that of those named a share of at most ALPHA did not, however they
    depend on each other (R. Wang, A. Ramdas, False discovery rate control with e-values, Journal of the Royal
    Statistical Society B 84, 2022).
    """
    order = sorted(evidences, reverse=True)
    enough = math.inf
    for rank, value in enumerate(order, 1):
        if value >= len(order) / (rank * ALPHA):
            enough = value
    return [value >= enough for value in evidences]
