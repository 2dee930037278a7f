"""What a printed number may have been before it was rounded, to see that two of them agree."""

from __future__ import annotations

from decimal import Decimal

Span = tuple[float, float]
"""Smallest and largest value."""

_BINARY = 1e-9
"""What floating point adds to the error of rounding, as a part of the value."""


def span(printed: str, units: float = 0.5) -> Span:
    """What may be printed as this: so many units of its last place to either side."""
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
    """Whether both may be the same number."""
    return a[0] <= b[1] + abs(b[1]) * _BINARY and b[0] <= a[1] + abs(a[1]) * _BINARY
