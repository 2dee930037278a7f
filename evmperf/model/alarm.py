"""The life of an alarm, kept with each night's verdict from its first night to its end."""

import enum

import msgspec

from evmperf.model import limits
from evmperf.model.stats import percent


class AlarmState(enum.StrEnum):
    """Where an alarm is in its life."""

    SUSPECTED = "suspected"
    """One night is off, but not by more than such figures were before."""
    OPEN = "open"
    CONFIRMED = "confirmed"
    """Open, and borne out by an A/B."""
    WITHDRAWN = "withdrawn"
    """Taken back by an A/B."""
    ACCEPTED = "accepted"
    RECOVERED = "recovered"
    LEVEL = "level"
    """Of something better: what has lasted so long is what later nights are compared with."""


class MetricAlarm(msgspec.Struct, frozen=True, omit_defaults=True):
    """One metric that is different `since` a run; `opened` is the run whose judging said so first, `good` the
    last run before. `level` is the figure before (in its unit), `size` the relative change over the newest of
    its `nights`, between `low` and `high` at 95 %, `spread` that of a night as a share, and `doubt` the
    evidence that it is over (logarithm of a likelihood ratio) of the last nights, `undecided` of them.
    """

    state: AlarmState
    since: str
    opened: str = ""
    good: str = ""
    nights: int = 1
    level: limits.Real = 0.0
    size: limits.Real = 0.0
    low: limits.Real = 0.0
    high: limits.Real = 0.0
    spread: limits.Real = 0.0
    doubt: limits.Real = 0.0
    undecided: int = 0
    slow: bool = False
    at_once: bool = False
    dated_before: str = ""
    """The run that `since` was until evidence said otherwise."""

    @property
    def is_open(self) -> bool:
        """Whether later nights are held against it."""
        return self.state in (AlarmState.OPEN, AlarmState.CONFIRMED)

    def story(self) -> str:
        """What there is to tell of it, in words."""
        bounds = f" ({percent(self.low).removesuffix(' %')} to {percent(self.high)})"
        again = f", dated again (was {self.dated_before})" if self.dated_before else ""
        if self.is_open:
            return self.brief("", bounds) + again
        size = f"{percent(self.size)}{bounds}"
        return f"{self.state}: {size} since {self.since}, for {self._nights}{again}"

    def brief(self, shown_since: str, bounds: str = "") -> str:
        """The same of an open one for a row of a table; `shown_since` is the run that the table has."""
        how = ", slowly" * self.slow + ", one night" * (self.at_once and self.nights == 1)
        since = "" if shown_since == self.since else f", since {self.since}"
        return f"{self.state} for {self._nights}{how}, {percent(self.size)}{bounds}{since}"

    @property
    def _nights(self) -> str:
        return f"{self.nights} night{'s' * (self.nights != 1)}"
