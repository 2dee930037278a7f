"""Sides measured in turn, on disk: what was asked for, and every round, after each of them.

    results/<id>/experiment.json   an A/B
    results/<id>/<run>/            one ordinary run a round
    results/<id>/rounds.log        what the measuring sessions said

Runs lie one folder deeper than others, so that no verdict takes a variation for history.
"""

import contextlib
import fcntl
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import UsageError
from evmperf.model.results import Header

FILE = "experiment.json"
SCHEMA = 3
INTERRUPTED = "interrupted"
NOTHING = "nothing was measured"
_HALF = "the other side of its block was not measured"


@dataclass
class Round:
    """One run of one side. `left_out` says why it does not count, "" if it does; `status` is the
    session's exit status, `seconds` what it took; `value` is the mean of the first metric that was
    asked for, in its unit (None: not measured).
    """

    block: int
    side: str
    run: str = ""
    status: int = 0
    seconds: float = 0.0
    value: float | None = None
    left_out: str = ""

    @property
    def failed(self) -> bool:
        """Whether it was measured without a result."""
        return self.left_out.startswith(NOTHING)


@dataclass(kw_only=True)
class Experiment:
    """What was asked for, and how far it has come. `boards` has the one board file, as given to pytest.
    `sides` are the words of both sides' variations; `metrics` the patterns of the metrics that decide when
    it ends. `select` is pytest's -k, `boots` the cold boots of a case of boot times in each round (0: those
    of the profile), `seed` that of the order.
    """

    id: str
    boards: list[str]
    sides: dict[str, list[str]]
    seed: str
    metrics: list[str] = field(default_factory=list)
    select: str = ""
    profile: str = ""
    boots: int = 0
    blocks: int = 20
    """Most blocks."""
    budget_s: float = 0.0
    """0: no budget but the blocks."""
    within: float = 0.02
    leave_out: list[str] = field(default_factory=list)
    """Cases that are not measured, as BENCHMARK/CASE."""
    rounds: list[Round] = field(default_factory=list)
    ended: str = ""
    schema: int = SCHEMA

    @property
    def board(self) -> str:
        """The board file."""
        return self.boards[0]

    @property
    def spent_s(self) -> float:
        """Seconds that all rounds took."""
        return sum(entry.seconds for entry in self.rounds)

    @property
    def next_block(self) -> int:
        """The number of the block that comes next."""
        return max((entry.block for entry in self.rounds), default=-1) + 1

    def order(self, block: int) -> list[str]:
        """The sides of a block in random order, the same each time one asks."""
        return sorted(
            self.sides, key=lambda side: hashlib.sha256(f"{self.seed}/{block}/{side}".encode()).digest()
        )

    def pairs(self) -> list[tuple[Round, ...]]:
        """The rounds of the blocks of which both sides count, in the order of the sides."""
        blocks: dict[int, dict[str, Round]] = {}
        for entry in self.rounds:
            if not entry.left_out:
                blocks.setdefault(entry.block, {})[entry.side] = entry
        return [
            tuple(rounds[side] for side in self.sides)
            for rounds in blocks.values()
            if self.sides.keys() <= rounds.keys()
        ]

    def resume(self) -> None:
        """Go on after whatever ended an earlier call."""
        self.leave_out_halves(INTERRUPTED)
        self.ended = ""

    def leave_out_halves(self, why: str = _HALF) -> None:
        """Leave out the rounds of a block whose other half is missing: the halves of a block must be
        measured one after the other.
        """
        whole = {first.block for first, _ in self.pairs()}
        for entry in self.rounds:
            if entry.block not in whole and not entry.left_out:
                entry.left_out = why

    def save(self, folder: Path) -> None:
        """Write the state; raises LabError when the disk does not take it."""
        write_whole(folder / FILE, msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the state; raises UsageError for a folder without one, or one of another evmperf's schema."""
        file = folder / FILE
        try:
            text = file.read_bytes()
            schema = msgspec.json.decode(text, type=Header).schema
            if schema != SCHEMA:
                raise UsageError(
                    f"{file}: has schema {schema}, this evmperf reads {SCHEMA}: finish it with the evmperf "
                    f"that began it, or begin anew"
                )
            return msgspec.json.decode(text, type=cls)
        except OSError as error:
            raise UsageError(f"{folder}: there is nothing to resume ({error.strerror})") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{file}: is damaged: {error}") from error


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only one who goes on with what is in a folder; raises UsageError for the second."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder}: another evmperf is at work on it") from None
        yield
