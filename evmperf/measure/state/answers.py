"""What `evmperf why` answers: a figure, what was read that may explain it, and what such causes cost.

`python -m selftests.instruments.price_list` measures prices in turn on one board, and writes FILE.
"""

import functools

import msgspec

from evmperf.model.places import project
from evmperf.model.stats import percent, rounded


class Cause(msgspec.Struct, frozen=True):
    """What may explain a figure: the evidence that was read, how many times lower it makes the figure at most
    (None: not known), and what would prove it; `elsewhere` is what it was measured to cost on other boards.
    """

    rule: str
    evidence: str
    proof: str
    size: float | None = None
    elsewhere: str = ""

    def __str__(self) -> str:
        return f"{self.evidence} (up to {self.size:.2f} times)" if self.size else self.evidence


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
    known: str = ""
    notes: tuple[str, ...] = ()
    causes: tuple[Cause, ...]

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
        if self.looked:
            return "no reading explains it"
        return "the board's state around this case was not recorded: measure it again"


FILE = project("baselines") / "prices.json"


class Price(msgspec.Struct, frozen=True):
    """How many times worse a figure was with a cause (its rule) than without: the mean of so many
    blocks, and its 95 % interval.
    """

    cause: str
    board: str
    benchmark: str
    case: str
    metric: str
    ratio: float
    low: float
    high: float
    blocks: int

    def __str__(self) -> str:
        return f"{self.ratio:.2f} times ({self.low:.2f} to {self.high:.2f}) on {self.board}, {self.benchmark}"


@functools.cache
def prices() -> tuple[Price, ...]:
    """All that were measured."""
    return msgspec.json.decode(FILE.read_bytes(), type=tuple[Price, ...]) if FILE.is_file() else ()


def price(cause: str, board: str, metric: str) -> tuple[float, str]:
    """The size of a cause on this kind of board (0: not known), and what it was elsewhere, "" where
    it was not measured.
    """
    # An interval with 1 in it does not tell that the cause costs anything.
    same = [p for p in prices() if p.low > 1 and (p.cause, p.metric) == (cause, metric)]
    here = max((one.ratio for one in same if one.board == board), default=0.0)
    return here, "; ".join(str(one) for one in same if one.board != board)
