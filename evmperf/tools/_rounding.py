"""Intervals of numbers before rounding, to check that two printed numbers agree."""

from decimal import Decimal

Span = tuple[float, float]
"""Smallest and largest value."""

_BINARY = 1e-9
"""Relative error that floating point adds to rounding."""


def span(printed: str, units: float = 0.5) -> Span:
    """The interval of a printed number: that many units of its last place to either side."""
    number = Decimal(printed)
    error = Decimal(units).scaleb(int(number.as_tuple().exponent))
    return float(number - error), float(number + error)


def times(a: Span, b: Span | float) -> Span:
    """The product of two numbers above zero."""
    low, high = b if isinstance(b, tuple) else (b, b)
    return a[0] * low, a[1] * high


def over(a: Span | float, b: Span) -> Span:
    """The quotient of two numbers above zero."""
    low, high = a if isinstance(a, tuple) else (a, a)
    return low / b[1] if b[1] > 0 else float("inf"), high / b[0] if b[0] > 0 else float("inf")


def agree(a: Span, b: Span) -> bool:
    """Whether both intervals may hold the same number."""
    return a[0] <= b[1] + abs(b[1]) * _BINARY and b[0] <= a[1] + abs(a[1]) * _BINARY
