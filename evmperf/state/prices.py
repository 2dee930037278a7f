"""What causes cost: sizes that were measured in turn on one board, with their intervals.

`python -m selftests.instruments.price_list` measures them and writes the file.
"""

import functools

import msgspec

from evmperf.model.places import project

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
def known() -> tuple[Price, ...]:
    """All that were measured."""
    return msgspec.json.decode(FILE.read_bytes(), type=tuple[Price, ...]) if FILE.is_file() else ()


def of(cause: str, board: str, metric: str) -> tuple[float, str]:
    """The size of a cause on this kind of board (0: not known), and what it was elsewhere, "" where
    it was not measured.
    """
    # An interval with 1 in it does not tell that the cause costs anything.
    same = [p for p in known() if p.low > 1 and (p.cause, p.metric) == (cause, metric)]
    here = max((price.ratio for price in same if price.board == board), default=0.0)
    return here, "; ".join(str(price) for price in same if price.board != board)
