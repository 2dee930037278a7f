"""Names of cases for people: their order, and sizes that are written in hexadecimal digits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}
_PART = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)(?![a-zA-Z0-9])|(\D+|\d+)")


def natural(case: str) -> tuple[tuple[int, float, str], ...]:
    """What cases sort by: numbers by their value, 4k before 1m, 9 before 10."""
    return tuple(
        (0, float(number) * 1024 ** _POWERS[unit.lower()], "") if number else (1, 0.0, word)
        for number, unit, word in _PART.findall(case)
    )


def named_size(params: Mapping[str, Any]) -> str:
    """The size that a case's hexadecimal digits mean, as `4 MiB`; "" for cases without."""
    try:
        size = int(str(params.get("size_hex", "")), 16)
    except ValueError:
        return ""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):g} {unit}"
    return f"{size} bytes"
