"""Statistics of the samples of one metric."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True)
class Summary:
    """A cell of the guide: derived from samples, in their unit. `outliers` are still counted in."""

    count: int
    mean: float
    low: float
    high: float
    outliers: int


def summarise(values: Sequence[float]) -> Summary:
    """Summarise at least one value; raises ValueError for none."""
    return Summary(
        count=len(values),
        mean=statistics.fmean(values),
        low=min(values),
        high=max(values),
        outliers=sum(outliers(values)),
    )


def outliers(values: Sequence[float]) -> list[bool]:
    """Mark values beyond Tukey's far-out fences (3 interquartile ranges; Exploratory Data Analysis, 1977).
    Fewer than five are never marked: their quartiles say nothing.
    """
    if len(values) < 5:
        return [False] * len(values)
    q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
    reach = 3 * (q3 - q1)
    return [not q1 - reach <= v <= q3 + reach for v in values]


def percent(change: float) -> str:
    """A relative change in percent: 0.05 is +5.0 %."""
    return f"{change * 100:+.1f} %"


def share_text(share: float) -> str:
    """A share in percent, without a sign: 0.05 is 5.0 %."""
    return f"{share * 100:.1f} %" if share < 10 else "any size"


def rounded(value: float, decimals: int = 2) -> str:
    """Decimal half-up rounding of the shortest decimal text of `value`, as the guides round."""
    step = Decimal(1).scaleb(-decimals)
    return str(Decimal(repr(value)).quantize(step, rounding=ROUND_HALF_UP))


def figure_text(mean: float, low: float | None, high: float | None, decimals: int = 2) -> str:
    """A figure as guides print it: bounds only where they differ after rounding."""
    text = rounded(mean, decimals)
    if low is None or high is None:
        return text
    least, most = rounded(low, decimals), rounded(high, decimals)
    return text if least == most else f"{text} (min {least}, max {most})"


_DIGITS, _MOST_DIGITS = 3, 6


def brief(value: float, low: float | None = None, high: float | None = None) -> str:
    """A figure with three significant digits, with more where its range needs them, and never less than its
    whole part: 709, 22.4, 12345, and 0.51234 of 0.51231 to 0.51237.
    """
    digits, size = _DIGITS, math.floor(math.log10(abs(value))) if value else 0
    if low is not None and high is not None and high > low:
        digits = min(max(digits, size - math.floor(math.log10(high - low)) + 1), _MOST_DIGITS)
    return rounded(value, max(digits - 1 - size, 0))
