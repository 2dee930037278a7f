"""What all parsers do with a text: check it, and refuse it with the reason."""

import contextlib
import re
from collections.abc import Iterator

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
    found = [match.groups() for match in pattern.finditer(text)]
    refuse(len(found) != 1, reason.format(len(found)), text)
    return found[0]


def twice(inner: str, file: str) -> str:
    """Shell text that writes the output of `inner` twice to `$OUT/FILE` against damage; always succeeds."""
    return f'a=$({inner}) || :; printf "%s\\n%s\\n" "$a" "$a" >"$OUT/{file}"'


def read_twice(text: str) -> str:
    """The text printed twice, "" without a file; raises RefusedOutput if the copies differ."""
    half = len(text) // 2
    refuse(text[:half] != text[half:], "the board's facts beside the figures are damaged", text)
    return text[:half]
