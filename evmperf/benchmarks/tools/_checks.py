"""What all parsers do with a text: check it, and refuse it with the reason; and intervals of numbers before
rounding, to check that two printed numbers agree.
"""

import contextlib
import re
from collections.abc import Iterator
from decimal import Decimal

from evmperf.model.errors import RefusedOutput


def refuse(when: object, reason: str, raw: str) -> None:
    """Raise RefusedOutput if `when` is true."""
    if when:
        raise RefusedOutput(reason, raw)


@contextlib.contextmanager
def refusing(reason: str, raw: str) -> Iterator[None]:
    """Raise RefusedOutput for data of another structure, as for text that is not JSON."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise RefusedOutput(reason, raw) from None


def whole(pattern: re.Pattern[str], text: str, reason: str, raw: str = "") -> re.Match[str]:
    """The match of the whole text; raises RefusedOutput without one."""
    match = pattern.fullmatch(text)
    if not match:
        raise RefusedOutput(reason, raw or text)
    return match


def only(pattern: re.Pattern[str], text: str, reason: str) -> tuple[str, ...]:
    """The groups of the only match in a text; raises RefusedOutput for none or several."""
    matches = [match.groups() for match in pattern.finditer(text)]
    refuse(len(matches) != 1, reason.format(len(matches)), text)
    return matches[0]


def twice(inner: str, file: str) -> str:
    """Shell text that writes the output of `inner` twice to `$OUT/FILE` against damage; always succeeds."""
    return f'a=$({inner}) || :; printf "%s\\n%s\\n" "$a" "$a" >"$OUT/{file}"'


def read_twice(text: str) -> str:
    """The text printed twice, "" without a file; raises RefusedOutput if the copies differ."""
    half = len(text) // 2
    refuse(text[:half] != text[half:], "the board's facts beside the figures are damaged", text)
    return text[:half]


def above_zero(printed: str, program: str, text: str) -> float:
    """A printed number; raises RefusedOutput for zero and less."""
    refuse(float(printed) <= 0, f"{program} measured nothing: zero", text)
    return float(printed)


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
