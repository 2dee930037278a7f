"""What `evmperf why` answers: a figure, and what was read that is able to explain it."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from evmperf.measure.state.finding import Finding
from evmperf.model.stats import percent, rounded

_SYMPTOMS = frozenset(
    ("bus", "processor", "device", "loss", "queue.nr_requests", "queue.wbt_lat_usec", "machine")
)
"""What a cause leads to as well: they come after it."""
_MACHINE = frozenset(("machine", "host", "quota", "pinned", "tracer", "beside", "other disk"))
"""What slows a device's requests and a cable's answers, too."""
_LEAST_PART = 0.15
"""Part of a difference below which a bound makes a bystander of a cause."""
_WHOLE = 0.8
"""Part of a difference from which on a cause may be all of it: bounds are estimates."""


def weigh(findings: Iterable[Finding], times: float, metric: str, names: Mapping[str, str]) -> list[Finding]:
    """The causes that can carry a difference of so many `times` (1: not known) in a metric.

    What spoils the machine comes first, then a device's faults, then what is set otherwise, bounded before
    unbounded, and symptoms last; of each, what may be all of it before what is a part of it. What is too
    small for a tenth of it or concerns other metrics is left out. `names` are the fields of commands.
    """
    order: list[tuple[tuple[int, bool, float], Finding]] = []
    for one in findings:
        if one.metrics and metric and not re.fullmatch(one.metrics, metric):
            continue
        part = math.log(max(one.size, 1.0)) / math.log(times) if one.size and times > 1 else 1.0
        if part < _LEAST_PART:
            continue
        partial = part < _WHOLE
        cause = replace(one, proof=one.proof.format_map(names), part=round(part, 3) if partial else None)
        # Without a bound it may be any amount: of a process that starves another, not of a setting.
        amount = -one.size or (0.0 if one.otherwise else -math.inf)
        order.append(((_tier(one), partial, amount), cause))
    # A machine that is slower as a whole is no device's doing.
    if any(cause.rule in _MACHINE and cause.part is None for _, cause in order):
        order = [(key, cause) for key, cause in order if cause.rule not in ("device", "loss")]
    return [cause for _, cause in sorted(order, key=lambda pair: pair[0])]


def _tier(one: Finding) -> int:
    """Where its kind stands in an answer."""
    if one.symptom or one.rule in _SYMPTOMS:
        return 5
    if one.otherwise:
        return 2 if one.size else 3
    return 0 if one.whole else 1


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One figure (mean, in `unit`) beside the published one of `release` (or that of a run of this
    name), None where there is none. A case that has no figure has its causes alone.

    `history` is what earlier releases published, `share` the part of what `bus` can carry; `looked`
    says whether the board's state around the case is known, `known` what is known of how the published
    figure was measured; `notes` say how far to trust what is told.
    """

    benchmark: str
    case: str
    metric: str = ""
    unit: str = ""
    ours: float | None = None
    theirs: float | None = None
    release: str = ""
    history: tuple[tuple[str, float], ...] = ()
    share: float | None = None
    bus: str = ""
    looked: bool
    failed: tuple[str, ...] = ()
    """What the case says itself of why it failed."""
    conditions: str = ""
    notes: tuple[str, ...] = ()
    causes: tuple[Finding, ...]
    read: tuple[Finding, ...] = ()
    """Of a figure that is not worse: what would be causes, and did no harm."""
    is_worse: bool = True
    """Whether the figure is worse than the other one, as far as that is known."""

    @property
    def times(self) -> float:
        """How many times worse than the other figure it is, whichever way is better; 1 without one."""
        if not (self.ours and self.theirs):
            return 1.0
        return max(self.ours / self.theirs, self.theirs / self.ours)

    @property
    def headline(self) -> str:
        """The figure beside the other one, and its share of the limit."""
        if self.ours is None:
            return "no figure"
        text = f"{rounded(self.ours)} {self.unit}"
        if self.theirs:
            text += f", {percent(self.ours / self.theirs - 1)} to {rounded(self.theirs)} of {self.release}"
        return f"{text}, {self.share:.0%} of {self.bus}" if self.share else text

    @property
    def published(self) -> str:
        """Its history over releases; "" for less than two."""
        by_release = [f"{release} {rounded(mean)}" for release, mean in self.history]
        return ", ".join(by_release) if len(by_release) > 1 else ""

    @property
    def unexplained(self) -> str:
        """What to do where no cause was read; "" where one was."""
        if self.causes:
            return ""
        if not self.is_worse:
            return "not worse: no cause"
        if self.looked:
            return "no reading explains it"
        return "the board's state around this case was not recorded: measure it again"
