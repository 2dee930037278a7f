"""What comparing says of one metric."""

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.stats import percent, rounded


class Outcome(enum.StrEnum):
    """The verdict; in the order in which people want to see them."""

    WORSE = "worse"
    BETTER = "better"
    UNKNOWN = "cannot tell"
    """Neither shown to have changed nor shown to be the same."""
    NOT_COMPARABLE = "not comparable"
    NOT_JUDGED = "not judged"
    """Shown only: a known artefact, or a quantity without a direction."""
    SAME = "same"
    """Shown to lie within a margin of the baseline (WITHIN, or WITHIN_POINTS for loads)."""


class GoalWord(enum.StrEnum):
    """What a figure says of a goal."""

    MISSED = "missed"
    UNKNOWN = "cannot tell"
    """Beyond the limit by less than the margin."""
    NOT_MEASURED = "not measured"
    MET = "met"


@dataclass(frozen=True)
class Reached:
    """A goal with what a run says of it; `value` in `unit`."""

    key: Key
    goal: str
    owner: str
    word: GoalWord
    value: float | None
    unit: str


WITHIN = 0.05
"""The margin of what is called the same, as a share of the baseline."""
WITHIN_POINTS = 1.0
"""The least such margin of loads, in percentage points."""
NO_COUNTERPART = "the baseline has none"
"""Why a figure without a counterpart is not comparable."""


HISTORY = 15
"""Earlier values that a verdict shows."""


@dataclass(frozen=True)
class Verdict:
    """One metric compared; `value`, `baseline` and `tolerance` in `unit`, None where not known.

    `p` is the probability of at least such a difference if nothing had changed.
    """

    key: Key
    outcome: Outcome
    unit: str
    better: Direction
    value: float | None = None
    baseline: float | None = None
    tolerance: float | None = None
    p: float | None = None
    why: str = ""
    suspect: bool = False
    """It differs, but not yet with enough evidence: the coming nights will tell."""
    slow: bool = False
    """A change over many nights, none of which shows it alone."""
    since: str = ""
    """The run from which on a series is different."""
    closed: str = ""
    """The run whose alarm went away."""
    confirmed: bool = False
    """Whether an A/B bears it out."""
    history: tuple[float, ...] = ()
    """The last values before it, at most HISTORY."""

    @property
    def change(self) -> float | None:
        """Relative change, 0.05 for 5 % more; None if unknown."""
        if self.value is None or not self.baseline:
            return None
        return self.value / self.baseline - 1


@dataclass(frozen=True)
class VerdictCause:
    """Metrics that changed together, from the run `since` on or slowly: `members`, the worst first.
    `suspects` are other differences since then, the likeliest first.
    """

    since: str
    slow: bool
    members: Sequence[Key]
    worse: int
    suspects: Sequence[str]

    def sentence(self) -> str:
        """One line for people."""
        count = len(self.members)
        names = list(dict.fromkeys(key.benchmark for key in self.members))
        few = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" * (len(names) > _NAMED))
        moved = f"{count} metric{'s' * (count != 1)} of {few} ({self.worse} worse)"
        when = f"slowly, since {self.since} or before" if self.slow else f"since {self.since}"
        return f"{moved}, {when}: {'; '.join(self.suspects)}"


_NAMED = 3
"""Number of a cause's benchmarks that are named."""


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a run, the worst first."""

    run: str
    board: str
    against: str
    verdicts: Sequence[Verdict] = field(default_factory=tuple)
    gone: Mapping[str, int] = field(default_factory=dict)
    """Figures of the baseline that the run does not have, by benchmark."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Tables of a published guide that were not read, by its run."""
    causes: Sequence[VerdictCause] = ()
    """Metrics that changed together, the largest group first."""
    goals: Sequence[Reached] = ()
    again: str = ""
    """The outcome of checking the alarms again, "" without one."""

    @property
    def new(self) -> dict[str, int]:
        """Figures of the run that the baseline does not have, by benchmark."""
        return dict(Counter(v.key.benchmark for v in self.verdicts if v.why == NO_COUNTERPART))

    def gaps(self) -> list[str]:
        """Figures and tables that only one side has, one line for each kind."""
        lines = [
            f"{(n := sum(counts.values()))} figure{'s' * (n != 1)} {what}: "
            + ", ".join(f"{name} {count}" for name, count in counts.items())
            for counts, what in ((self.gone, "only in the baseline"), (self.new, "not in the baseline"))
            if counts
        ]
        return lines + [
            f"{count} {'table' if count == 1 else 'tables'} of {run} "
            f"{'was' if count == 1 else 'were'} not read: their figures are not compared"
            for run, count in self.unread.items()
        ]

    def count(self, outcome: Outcome) -> int:
        """How many metrics ended like that."""
        return sum(verdict.outcome is outcome for verdict in self.verdicts)

    @property
    def missed(self) -> list[Reached]:
        """The goals that are missed."""
        return [goal for goal in self.goals if goal.word is GoalWord.MISSED]

    @property
    def compared(self) -> int:
        """How many metrics were decided."""
        judged = (Outcome.WORSE, Outcome.BETTER, Outcome.SAME)
        return sum(verdict.outcome in judged for verdict in self.verdicts)

    @property
    def exit_status(self) -> ExitStatus:
        """OK, FAILED (worse, or a missed goal), UNDECIDED (suspected, or cannot tell) or NOTHING."""
        if self.count(Outcome.WORSE) or self.missed:
            return ExitStatus.FAILED
        open_goals = any(goal.word is not GoalWord.MET for goal in self.goals)
        if open_goals or any(verdict.suspect for verdict in self.verdicts):
            return ExitStatus.UNDECIDED
        if self.compared:
            return ExitStatus.OK
        return ExitStatus.UNDECIDED if self.count(Outcome.UNKNOWN) else ExitStatus.NOTHING

    @property
    def headline(self) -> str:
        """The result as a title; it always names what is undecided."""
        worse, unknown = self.count(Outcome.WORSE), self.count(Outcome.UNKNOWN)
        suspects = sum(verdict.suspect for verdict in self.verdicts)
        missed = f"{len(self.missed)} goal{'s' * (len(self.missed) != 1)} missed" if self.missed else ""
        if not self.compared and not unknown:
            return missed or "nothing comparable"
        parts = [missed, f"{worse} metric{'s' * (worse != 1)} worse" if worse else ""]
        if worse and self.causes:
            parts[1] += f" of {len(self.causes)} cause{'s' * (len(self.causes) != 1)}"
        parts += [f"{suspects} suspected" if suspects else ""]
        if not worse and self.compared:
            parts.append(f"none of {self.compared} decided is worse")
        parts += [f"{unknown} undecided" if unknown else ""]
        return ", ".join(part for part in parts if part)

    def sentence(self) -> str:
        """One line for people."""
        counts = ", ".join(f"{number} {outcome}" for outcome in Outcome if (number := self.count(outcome)))
        again = f"; {self.again}" if self.again else ""
        if gone := sum(bool(verdict.closed) for verdict in self.verdicts):
            again = f"; {gone} alarm{'s' * (gone != 1)} went away{again}"
        if self.causes:
            again = f" (of {len(self.causes)} cause{'s' * (len(self.causes) != 1)}){again}"
        return f"{self.run} against {self.against}: {counts or 'nothing to compare'}{again}"


def by_severity(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The worst first, the largest change first among equals."""
    order = {outcome: number for number, outcome in enumerate(Outcome)}
    return tuple(sorted(verdicts, key=lambda v: (order[v.outcome], -abs(v.change or 0.0), v.key)))


def number(value: float | None) -> str:
    """A figure for people, "-" where there is none."""
    return "-" if value is None else rounded(value)


def change_text(change: float | None) -> str:
    """A relative change for people, "-" where there is none."""
    return "-" if change is None else percent(change)


def explained(verdict: Verdict) -> str:
    """The reason of a verdict in a line: figure, baseline, since when, and why."""
    parts = [f"{number(verdict.value)} {verdict.unit}"]
    if verdict.baseline is not None:
        parts.append(f"was {number(verdict.baseline)} ({change_text(verdict.change)})")
    parts += [f"since {verdict.since}" if verdict.since else "", verdict.why]
    return ", ".join(part for part in parts if part)
