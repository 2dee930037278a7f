"""The order of cases for people."""

import re

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}
_PART = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)(?![a-zA-Z0-9])|(\D+|\d+)")


def natural(case: str) -> tuple[tuple[int, float, str], ...]:
    """What cases sort by: numbers by their value, 4k before 1m, 9 before 10."""
    return tuple(
        (0, float(number) * 1024 ** _POWERS[unit.lower()], "") if number else (1, 0.0, word)
        for number, unit, word in _PART.findall(case)
    )
