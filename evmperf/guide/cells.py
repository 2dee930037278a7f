"""The text of a figure in a guide: `21.36 (min 20.52, max 21.88)`, and its irregular relatives."""

import re

from evmperf.model.results import Published
from evmperf.model.stats import rounded
from evmperf.model.units import Unit

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_CELL = re.compile(
    rf"(?P<about>~?)(?P<mean>{_NUMBER})"
    rf"(?: \(min (?P<low>{_NUMBER}), max (?P<high>{_NUMBER})\))?"
    r"(?: (?P<unit>[A-Za-z]+/s)|%)?"
)
_EXTRA = re.compile(r" \[[^\]]*\]$")
"""What `evmperf guide --with` adds to a figure."""
_CELL_BYTES = {"kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9}
"""Units that cells carry themselves, in bytes per second."""
_UNIT_BYTES = {Unit.KILOBYTE_PER_SECOND: 1e3, Unit.MEGABYTE_PER_SECOND: 1e6}


class CellError(ValueError):
    """A cell that is not a figure; its text says why."""


def figure_text(mean: float, low: float | None, high: float | None, decimals: int = 2) -> str:
    """A figure as guides print it: bounds only where they differ after rounding."""
    text = rounded(mean, decimals)
    if low is None or high is None:
        return text
    least, most = rounded(low, decimals), rounded(high, decimals)
    return text if least == most else f"{text} (min {least}, max {most})"


def parse(text: str, metric: str, unit: Unit, decimals: int = 2, line: int = 0) -> Published:
    """The figure in a cell, in `unit`; raises CellError for anything else.

    The text is kept where the numbers alone would not give it again.
    """
    text = _EXTRA.sub("", text)
    match = _CELL.fullmatch(text.strip())
    if not match:
        raise CellError(f"{text!r} is not a figure")
    mean, low, high = (
        None if match[name] is None else float(match[name]) for name in ("mean", "low", "high")
    )
    assert mean is not None
    if match["unit"]:
        mean *= _factor(match["unit"], unit)
    if low is not None and high is not None and not low <= mean <= high:
        raise CellError(f"{text!r}: the mean is not between its bounds")
    plain = figure_text(mean, low, high, decimals) == text
    return Published(metric, str(unit), mean, low, high, "" if plain else text, line)


def decimals(text: str) -> int:
    """How many decimals the first number of a cell has."""
    match = _CELL.match(text.strip())
    return len(match["mean"].partition(".")[2]) if match else 0


def _factor(printed: str, unit: Unit) -> float:
    known = _CELL_BYTES.get(printed.lower())
    if known is None or unit not in _UNIT_BYTES:
        raise CellError(f"unit {printed!r} in a cell measured in {unit}")
    return known / _UNIT_BYTES[unit]
