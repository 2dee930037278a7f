"""The comparison of two sides of one board that were measured in turn."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.model import anytime
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.units import Unit
from evmperf.model.verdict import Outcome


@dataclass(frozen=True)
class Quantity:
    """A metric's unit and direction."""

    unit: str
    better: Direction


@dataclass(frozen=True)
class Change:
    """One metric from A to B. `a` and `b` hold a value for each block that has both, in the metric's unit;
    `change` and its 95 % bounds at any time, `low` and `high` (infinite while unknown), are relative (0.05 is
    5 % more), for loads in points. `within` is what counts as the same.
    """

    key: Key
    quantity: Quantity
    a: tuple[float, ...]
    b: tuple[float, ...]
    change: float
    low: float
    high: float
    evidence: float
    within: float
    decision: Outcome = Outcome.UNKNOWN

    @property
    def in_points(self) -> bool:
        """Whether the change is in percentage points instead of relative."""
        return self.quantity.unit == Unit.PERCENT

    @property
    def middles(self) -> tuple[float, float]:
        """The median of A, and B as much above it as within the blocks, but within what was measured of B, in
        the metric's unit.
        """
        a = statistics.median(self.a)
        unit = 1.0 if self.in_points else statistics.median(map(abs, self.a)) or 1.0
        b = a + self.change * unit
        return a, min(max(b, min(self.b)), max(self.b)) if math.isfinite(b) else statistics.median(self.b)

    @property
    def noise(self) -> float | None:
        """Standard deviation of the blocks' differences, as a share (loads: in points), or None."""
        if self.in_points:
            differences = [b - a for a, b in zip(self.a, self.b, strict=True)]
        else:
            differences = [b / a - 1 for a, b in zip(self.a, self.b, strict=True) if a]
        return statistics.stdev(differences) if len(differences) > 1 else None

    @property
    def detectable(self) -> float:
        """The smallest change that these blocks can tell; infinite for too few."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Comparison:
    """The state of an A/B. `a` and `b` describe the sides; it ends when the metrics `waiting` are
    decided; `ended` is the reason for its end, "" before; `spent_s` is in seconds.
    """

    id: str
    board: str
    a: str
    b: str
    blocks: int
    spent_s: float
    changes: Sequence[Change]
    waiting: Sequence[Key] = ()
    ended: str = ""
    alpha: float = anytime.ALPHA
    notes: Sequence[str] = ()
    """Omissions, with the reasons."""

    def count(self, decision: Outcome) -> int:
        """How many metrics ended like that."""
        return sum(change.decision is decision for change in self.changes)

    @property
    def open(self) -> list[Change]:
        """The undecided metrics among those it waits for."""
        waiting = set(self.waiting)
        return [
            change for change in self.changes if change.key in waiting and change.decision is Outcome.UNKNOWN
        ]

    def plan(self, most: int, budget_s: float) -> str:
        """How many blocks and minutes the metrics that are not decided need, about, and whether so many are
        allowed (`most` blocks, `budget_s` seconds, 0 for any); "" where nothing is open.
        """
        if not self.open or not self.blocks:
            return ""
        noise = [(c, spread) for c in self.open if (spread := c.noise) is not None]
        needed = max((anytime.values_needed(spread, c.within) for c, spread in noise), default=anytime.FEWEST)
        block_s = self.spent_s / self.blocks
        allowed = min(most, int(budget_s / block_s) if budget_s and block_s else most)
        text = (
            f"{'about' if noise else 'at least'} {needed} blocks, {needed * block_s / 60:.0f} min in "
            f"all, would tell the same from a change"
        )
        if needed <= allowed:
            return text
        lost = "nothing can be decided" if allowed < anytime.FEWEST else "small changes may stay unknown"
        return f"{text}; {allowed} {'is' if allowed == 1 else 'are'} allowed, so {lost}"

    @property
    def exit_status(self) -> ExitStatus:
        """FAILED for something worse, UNDECIDED while anything waited for is not decided, else OK; NOTHING
        where nothing was measured on both sides.
        """
        if not self.changes:
            return ExitStatus.NOTHING
        if self.count(Outcome.WORSE):
            return ExitStatus.FAILED
        return ExitStatus.UNDECIDED if self.open else ExitStatus.OK

    @property
    def state(self) -> str:
        """The same as a state of SIGNS."""
        return {ExitStatus.FAILED: "bad", ExitStatus.OK: "good"}.get(self.exit_status, "unsure")

    @property
    def headline(self) -> str:
        """The result as a title."""
        worse = self.count(Outcome.WORSE)
        parts = [f"{worse} metric{'s' * (worse != 1)} worse"] if worse else []
        parts += [f"{len(self.open)} not decided"] if self.open else []
        if not self.changes:
            return "nothing measured on both sides"
        return ", ".join(parts) or "all decided, nothing worse"

    def sentence(self) -> str:
        """One line for people."""
        numbers = {decision: self.count(decision) for decision in Outcome}
        aside = numbers[Outcome.UNKNOWN] - len(self.open)
        numbers[Outcome.UNKNOWN] = len(self.open)
        counts = ", ".join(f"{number} {decision}" for decision, number in numbers.items() if number)
        counts += f"{', ' * bool(counts)}{aside} not decided by the way" if aside else ""
        blocks = f"{self.blocks} block{'s' * (self.blocks != 1)}"
        return (
            f"B ({self.b}) against A ({self.a}) on {self.board} after {blocks}: "
            f"{counts or 'nothing measured on both sides'}"
        )
