"""The life of an alarm, kept with each night's verdict from its first night to its end."""

import enum
import math

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
    its `nights`, between `low` and `high` at 95 %, `spread` that of a night as a share, and `undecided` the
    number of newest nights that do not bear it out. From a level of 0 there is no share: these are in `unit`.
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
    undecided: int = 0
    slow: bool = False
    at_once: bool = False
    unit: str = ""
    eased: str = ""
    """The run since which it is half mended."""
    earlier: tuple[str, ...] = ()
    """The runs since which it was there before: it comes and goes."""
    under: "MetricAlarm | None" = None
    """The loss that was there before this second one."""

    @property
    def is_open(self) -> bool:
        """Whether later nights are held against it."""
        return self.state in (AlarmState.OPEN, AlarmState.CONFIRMED)

    @property
    def is_finite(self) -> bool:
        """Whether all its numbers are numbers."""
        numbers = (self.level, self.size, self.low, self.high, self.spread)
        return all(map(math.isfinite, numbers)) and (self.under is None or self.under.is_finite)

    def story(self) -> str:
        """What there is to tell of it, in words."""
        if self.unit:
            bounds = f" ({self.low:+.3g} to {self.amount(self.high)})"
        else:
            bounds = f" ({percent(self.low).removesuffix(' %')} to {percent(self.high)})"
        if self.is_open:
            return self.brief("", bounds)
        return f"{self.state}: {self.amount(self.size)}{bounds} since {self.since}, for {self._nights}"

    def brief(self, shown_since: str, bounds: str = "") -> str:
        """The same of an open one for a row of a table; `shown_since` is the run that the table has."""
        how = ", slowly" * self.slow
        since = "" if shown_since == self.since else f", since {self.since}"
        more = f"; half mended since {self.eased}" if self.eased else ""
        if self.earlier:
            more += f"; intermittent: also since {', '.join(self.earlier[-_SHOWN:])}"
        if self.under:
            more += f"; on top of {self.amount(self.under.size)} since {self.under.since}"
        return f"{self.state} for {self._nights}{how}, {self.amount(self.size)}{bounds}{since}{more}"

    def amount(self, size: float) -> str:
        """One of its sizes as text: a share in percent, or an amount in its unit."""
        return f"{size:+.3g} {self.unit}" if self.unit else percent(size)

    @property
    def _nights(self) -> str:
        return f"{self.nights} night{'s' * (self.nights != 1)}"


_SHOWN = 3
"""Earlier times of an intermittent loss that are told."""
