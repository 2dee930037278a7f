"""One line of the table of variants."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from scipy import special

from selftests.instruments.variants.ways import Row, Way

HEAD = """\
| variant | figure | evmperf | the other way | difference | n |
|---|---|---|---|---|---|"""
_FEWEST = 3


@dataclass(frozen=True)
class Measured:
    """What was measured in evmperf's way and in another, each pair one after the other."""

    row: Row
    way: Way
    metric: str
    own: list[float]
    other: list[float]

    @property
    def difference(self) -> tuple[float, float]:
        """How much more evmperf's way gives, as a part of the other, and half of the 95 %
        confidence interval of that mean; raises ValueError for fewer than three pairs.
        """
        parts = [own / other - 1 for own, other in zip(self.own, self.other, strict=True)]
        if len(parts) < _FEWEST:
            raise ValueError(f"{len(parts)} pairs are too few")
        spread = statistics.stdev(parts) / math.sqrt(len(parts))
        return statistics.fmean(parts), float(special.stdtrit(len(parts) - 1, 0.975)) * spread


def line(measured: Measured) -> str:
    """The line in Markdown; it says so where there are too few pairs."""
    row, count = measured.row, len(measured.own)
    head, unit = f"| `{row.variant}` | {row.figures[measured.metric]} |", row.unit(measured.metric)
    if count < _FEWEST:
        return f"{head} {row.own.name} | {measured.way.name} | not measured | {count} |"
    own, other = (statistics.fmean(values) for values in (measured.own, measured.other))
    mean, half = measured.difference
    ours = f"{row.own.name}: {own:.4g} {unit}"
    theirs = f"{measured.way.name}: {other:.4g} {unit}"
    return f"{head} {ours} | {theirs} | {mean:+.1%} ± {half:.1%} | {count} |"
