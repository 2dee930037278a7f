"""A series as a row of bars."""

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """Values as bars between their smallest and largest; "" for fewer than two."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[round((value - low) / span * top)] for value in values)
