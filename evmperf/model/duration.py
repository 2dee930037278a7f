"""How long something may take, as people write it: 90s, 30m, 2h, 1h30m."""

import re

from evmperf.model.errors import UsageError

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_FORM = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def seconds(text: str) -> float:
    """The seconds in a duration, 0 for ""; raises UsageError for what is none."""
    parts = _FORM.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{text!r} is not a duration: write 90s, 30m, 2h or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
