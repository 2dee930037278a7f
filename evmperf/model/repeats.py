"""How often a case is to be measured: so many times, or until its mean is known."""

import re
from dataclasses import dataclass

from evmperf.model.errors import UsageError
from evmperf.model.units import seconds

_UNTIL = re.compile(r"until:(\d+(?:\.\d+)?)%(?:/(\w+))?")
_BUDGET_S = 600.0


@dataclass(frozen=True)
class Repeats:
    """`rounds` times; or, with `within`, until the 95 % confidence interval of each mean is within that
    share or `budget_s` seconds are spent. `boots` are the cold boots of a round, 0 for the profile's.
    """

    rounds: int = 1
    within: float | None = None
    budget_s: float = _BUDGET_S
    boots: int = 0


def parse(text: str, boots: int = 0) -> Repeats:
    """Read `5`, `until:2%` or `until:2%/30m`; raises UsageError for anything else."""
    if boots < 0:
        raise UsageError(f"--boots={boots}: must be at least 1")
    if text.isdigit() and int(text) > 0:
        return Repeats(int(text), boots=boots)
    if match := _UNTIL.fullmatch(text):
        percent, budget = match.groups()
        spent = seconds(budget) if budget else _BUDGET_S
        if float(percent) > 0 and spent > 0:
            return Repeats(within=float(percent) / 100, budget_s=spent, boots=boots)
    raise UsageError(
        f"--repeat={text} is neither a number of times nor until:PERCENT%, as until:2% or "
        f"until:2%/30m (a budget for each case, else {_BUDGET_S / 60:g} minutes)"
    )
