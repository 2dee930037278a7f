"""What comparing says of one metric."""

import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evmperf.model.alarm import AlarmState, MetricAlarm
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


def better_or_worse(change: float, better: Direction) -> Outcome:
    """What a change is of a metric with that direction."""
    return Outcome.BETTER if (change > 0) is (better is Direction.HIGHER) else Outcome.WORSE


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


class Reason(enum.StrEnum):
    """Why a verdict is what it is, for programs; `why` says it for people."""

    OTHER = ""
    NO_COUNTERPART = "no counterpart"
    NOISE = "noise"
    """A change that matters would not show."""
    ODD = "odd"
    """Far off, but not by more than such figures were before, or the whole board is slow."""
    FEW_NIGHTS = "few nights"
    SUSPECTED = "suspected"
    RECOVERING = "recovering"
    """An open alarm that tonight does not bear out, and that is not shown to be over."""
    NOT_MEASURED = "not measured"
    """The run does not have a figure with an open alarm."""
    ALARM = "alarm"
    """What `alarm` says: opened, open, or ended tonight."""


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
    reason: Reason = Reason.OTHER
    alarm: MetricAlarm | None = None
    control: bool = False
    """It is of the board itself, not of the software under test."""
    history: tuple[float, ...] = ()
    """The last values before it, at most HISTORY."""

    @property
    def suspected_loss(self) -> bool:
        """Whether this is a suspicion of something worse."""
        if self.alarm is None or self.reason is not Reason.SUSPECTED:
            return False
        return better_or_worse(self.alarm.size, self.better) is Outcome.WORSE

    @property
    def suspect(self) -> bool:
        """It differs, but not yet with enough evidence: the coming nights will tell."""
        return self.alarm is not None and self.alarm.state is AlarmState.SUSPECTED

    @property
    def slow(self) -> bool:
        """A change over many nights, none of which shows it alone."""
        return self.alarm is not None and self.alarm.slow

    @property
    def since(self) -> str:
        """The run from which on a series is different, "" for one that is not."""
        moved = self.outcome in (Outcome.WORSE, Outcome.BETTER)
        return self.alarm.since if self.alarm and moved else ""

    @property
    def lasting(self) -> float | None:
        """The relative change over the nights of an alarm, where that of tonight is another."""
        if self.alarm is None or self.alarm.nights < 2 or not self.since or self.change is None:
            return None
        return self.alarm.size if not math.isclose(self.alarm.size, self.change, abs_tol=5e-4) else None

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
    size: str = ""
    """By how much in the median, of the members that are worse if any is, e.g. `30.3 %`."""
    good: str = ""
    """The last run before."""
    nights: int = 1
    """Runs from `since` to the judged one."""
    new: bool = False
    """Whether the judged run is the first whose verdicts say so."""
    command: str = ""
    """What to type next."""

    def sentence(self) -> str:
        """One line for people."""
        count = len(self.members)
        names = list(dict.fromkeys(key.benchmark for key in self.members))
        few = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" * (len(names) > _NAMED))
        by = f"{', median' * (count > 1) or ' by'} {self.size}" if self.size else ""
        words = f"{self.worse} worse{by}" if self.worse else f"better{by}"
        moved = f"{count} metric{'s' * (count != 1)} of {few} ({words})"
        age = "new tonight" if self.new else f"night {self.nights}"
        when = f"slowly, since {self.since} or before" if self.slow else f"{age}, since {self.since}"
        good = f", last good run {self.good}" if self.good and not self.slow else ""
        command = f"; next: {self.command}" if self.command else ""
        return f"{moved}, {when}{good}: {'; '.join(self.suspects)}{command}"


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
        return dict(Counter(v.key.benchmark for v in self.verdicts if v.reason is Reason.NO_COUNTERPART))

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
        """FAILED for a decided loss of the software under test or a missed goal, UNDECIDED where something is
        suspected, an alarm is in doubt or the board changed, else OK; NOTHING where nothing was compared.
        """
        if self.missed or any(v.outcome is Outcome.WORSE and not v.control for v in self.verdicts):
            return ExitStatus.FAILED
        open_goals = any(goal.word is not GoalWord.MET for goal in self.goals)
        if open_goals or self.suspects or self.board_changes:
            return ExitStatus.UNDECIDED
        if self.compared:
            return ExitStatus.OK
        return ExitStatus.UNDECIDED if self.count(Outcome.UNKNOWN) else ExitStatus.NOTHING

    @property
    def perhaps_worse(self) -> list[Verdict]:
        """What an A/B can confirm: worse figures, and suspected ones on that side; no control figures."""
        return [
            v for v in self.verdicts if not v.control and (v.outcome is Outcome.WORSE or v.suspected_loss)
        ]

    @property
    def suspects(self) -> list[Verdict]:
        """What later nights decide: suspected, or an open alarm that tonight does not bear out or measure."""
        later = (Reason.SUSPECTED, Reason.RECOVERING, Reason.NOT_MEASURED)
        return [v for v in self.verdicts if v.reason in later]

    @property
    def board_changes(self) -> list[Verdict]:
        """Figures of the board itself that changed."""
        return [v for v in self.verdicts if v.control and v.outcome in (Outcome.WORSE, Outcome.BETTER)]

    @property
    def headline(self) -> str:
        """The result as a title; it always names what is undecided."""
        worse, unknown = self.count(Outcome.WORSE), self.count(Outcome.UNKNOWN)
        suspects = len(self.suspects)
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
        ended = [v for v in self.verdicts if v.alarm and v.alarm.state is AlarmState.RECOVERED]
        if ended:
            again = f"; {len(ended)} alarm{'s' * (len(ended) != 1)} recovered{again}"
        if self.suspects:
            again += f"; later nights decide on {_few(self.suspects)}"
        if self.exit_status is ExitStatus.UNDECIDED and self.board_changes:
            changed = _few(self.board_changes)
            again += f"; the board changed: {changed}; no software figure is worse; look at the board"
        if self.causes:
            again = f" (of {len(self.causes)} cause{'s' * (len(self.causes) != 1)}){again}"
        return f"{self.run} against {self.against}: {counts or 'nothing to compare'}{again}"


def _few(verdicts: Sequence[Verdict]) -> str:
    """Some figures with their changes, by name."""
    named = ", ".join(f"{' '.join(v.key)} {change_text(v.change)}" for v in verdicts[:_NAMED])
    return named + f" and {len(verdicts) - _NAMED} more" * (len(verdicts) > _NAMED)


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
    parts.append(verdict.why)
    return ", ".join(part for part in parts if part)
