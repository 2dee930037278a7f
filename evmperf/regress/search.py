"""A bisection and its steps: an A/B of good and bad with a third side, the candidate.

First good and bad are compared until their difference is known (an A/B of one metric); without one
there is nothing to look for. Then each candidate is measured together with both, in random order
within blocks, until it is clear which of the two it is like (`evmperf.regress.paired`).
"""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from evmperf.model import anytime
from evmperf.model.errors import BoardError, LabError, UsageError
from evmperf.regress.experiment import Round, Turns
from evmperf.regress.paired import differ, likeness

FILE = "search.json"
GOOD, BAD, CANDIDATE = "good", "bad", "candidate"
MOST_BLOCKS = 60
"""Blocks, of the references or of one candidate, where nobody says otherwise."""
_DEAD = 2
"""Failures of a candidate in a row after which it cannot be told."""
_MOST_UNDECIDED = 3
"""Versions that all blocks allowed could not decide, after which no further one is tried."""
_DEAD_REFERENCE = 3
"""Failures of a reference in a row after which the board is what is broken."""


class StepAnswer(enum.StrEnum):
    """What a step says of a version."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "cannot tell"


@dataclass
class Step:
    """What was found out about a version: the probability that it is like the bad one."""

    version: str
    answer: str
    bad: float
    blocks: int
    why: str = ""


@dataclass(kw_only=True)
class Search(Turns):
    """What was asked for, and how far it has come. `good` and `bad` are words of a variation,
    `what` those of a candidate with `{}` for its version; `versions` are a list, oldest first.
    """

    file: ClassVar[str] = FILE
    boards: list[str]
    metric: str
    good: list[str]
    bad: list[str]
    what: list[str]
    build: str = ""
    repository: str = ""
    """Where the versions are commits; they are then the good and the bad one alone."""
    most_blocks: int = MOST_BLOCKS
    versions: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Of a state file they are plain data.
        self.steps = [step if isinstance(step, Step) else Step(**step) for step in self.steps]

    def words(self, side: str, version: str) -> list[str]:
        """The words of a variation that make one round."""
        if side == CANDIDATE:
            return [word.replace("{}", version) for word in self.what]
        return self.good if side == GOOD else self.bad

    @property
    def board(self) -> str:
        """The board that is measured now."""
        return self.boards[0]

    @property
    def stuck(self) -> str:
        """Why no further version is worth measuring, "" while one is."""
        undecided = [
            step
            for step in self.steps
            if step.answer == StepAnswer.UNKNOWN and step.blocks >= self.most_blocks
        ]
        if len(undecided) < _MOST_UNDECIDED:
            return ""
        return (
            f"{self.most_blocks} blocks did not decide any of {len(undecided)} versions: the "
            f"difference is too small for the noise; begin anew with more --rounds, or with a "
            f"metric that repeats better"
        )

    def references(self) -> list[tuple[float, float]]:
        """Good and bad of each block that has both, on today's board."""
        return [
            (values[GOOD], values[BAD])
            for values in self._blocks().values()
            if GOOD in values and BAD in values
        ]

    def triples(self, version: str) -> list[tuple[float, float, float]]:
        """Good, bad and candidate of each block that has the three."""
        blocks = {entry.block for entry in self.rounds if entry.version == version}
        return [
            (values[GOOD], values[BAD], values[CANDIDATE])
            for number, values in self._blocks().items()
            if number in blocks and set(values) == {GOOD, BAD, CANDIDATE}
        ]

    def _blocks(self) -> dict[int, dict[str, float]]:
        found: dict[int, dict[str, float]] = {}
        for entry in self.rounds:
            if entry.value is not None and entry.board == self.board:
                found.setdefault(entry.block, {})[entry.side] = entry.value
        return found

    def in_a_row(self, side: str, version: str) -> int:
        """How many rounds of a version, the last ones, gave nothing."""
        count = 0
        for entry in reversed(self.rounds):
            if (entry.side, entry.version, entry.board) == (side, version, self.board):
                if entry.value is not None:
                    break
                count += 1
        return count


class VersionMeasurer(Protocol):
    """Something that measures one round of a search."""

    def measure(self, search: Search, entry: Round) -> None:
        """Fill in run, value and seconds; the value stays None for what does not boot or is not
        what was asked for. Raises LabError.
        """


Tell = Callable[[str], None]


class Bisector:
    """Carries out the steps of a search; `keep` saves it, and is called after each round."""

    def __init__(
        self,
        search: Search,
        measures: VersionMeasurer,
        keep: Callable[[Search], None],
        tell: Tell = lambda _: None,
    ) -> None:
        self.search = search
        self._save = keep
        self._measures = measures
        self._tell = tell

    def calibrate(self) -> bool:
        """Measure good and bad in turn until their difference is known; False when there is none
        that as many blocks as are allowed could show. Raises LabError, BoardError.
        """
        search = self.search
        while True:
            pairs = search.references()
            if len(pairs) >= anytime.FEWEST and differ(pairs) >= 1 / anytime.ALPHA:
                return True
            if len(pairs) >= search.most_blocks:
                return False
            self._on_a_board(lambda: self._block((GOOD, BAD), ""))
            self._tell(f"good against bad: {len(search.references())} blocks")

    def step(self, version: str) -> Step:
        """Measure a version with good and bad until it is clear which it is like."""
        search = self.search
        for done in search.steps:
            if done.version == version:
                return done
        while True:
            found = likeness(search.triples(version))
            if found.blocks:
                self._tell(f"{version}: {found.blocks} blocks, like bad with {found.bad:.1%}")
            dead = search.in_a_row(CANDIDATE, version)
            if found.decided:
                answer = StepAnswer.BAD if found.bad > 0.5 else StepAnswer.GOOD
                return self._keep(Step(version, answer, found.bad, found.blocks))
            if dead >= _DEAD:
                why = f"not measured {dead} times in a row"
                return self._keep(Step(version, StepAnswer.UNKNOWN, 0.5, found.blocks, why))
            if found.blocks >= search.most_blocks:
                why = f"neither like good nor like bad after {found.blocks} blocks"
                return self._keep(Step(version, StepAnswer.UNKNOWN, found.bad, found.blocks, why))
            self._on_a_board(lambda: self._block((GOOD, BAD, CANDIDATE), version))

    def _keep(self, step: Step) -> Step:
        self.search.steps.append(step)
        self._save(self.search)
        return step

    def _block(self, sides: Sequence[str], version: str) -> None:
        search = self.search
        block = search.next_block
        for side in search.order(block, sides):
            entry = Round(block, side, version if side == CANDIDATE else "", search.board)
            self._measures.measure(search, entry)
            search.rounds.append(entry)
            self._save(search)
            if side != CANDIDATE and search.in_a_row(side, "") >= _DEAD_REFERENCE:
                raise BoardError(
                    f"{search.board}: the {side} version was not measured {_DEAD_REFERENCE} times in a row"
                )

    def _on_a_board(self, work: Callable[[], None]) -> None:
        """Do the work on today's board, or on another of its kind when that one is broken."""
        try:
            work()
        except (LabError, BoardError) as error:
            if len(self.search.boards) == 1:
                raise
            gone = self.search.boards.pop(0)
            self._save(self.search)
            self._tell(f"{gone} is given up ({error}); good and bad anew on {self.search.board}")
            if not self.calibrate():
                raise BoardError(f"{self.search.board}: shows no difference between good and bad") from error


@dataclass(frozen=True)
class Culprit:
    """The answer: the change is that from `before` to `version`, with a probability, or lies
    between the two and not closer, for a reason.
    """

    before: str
    version: str
    probability: float
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return f"between {self.before} and {self.version}, not closer: {self.why}"
        return f"{self.version}, with a probability of {self.probability:.1%}"


def bisect(bisector: Bisector) -> Culprit | None:
    """Find the first bad version of the search's list, of which the first is good and the last bad
    by definition; None when good and bad do not differ. Raises UsageError for a list too short.
    """
    search = bisector.search
    if len(search.versions) < 2:
        raise UsageError("a bisection needs two versions at least, the first good, the last bad")
    if not bisector.calibrate():
        return None
    low, high = 0, len(search.versions) - 1
    unknown: dict[int, str] = {}
    while not search.stuck and (left := [number for number in range(low + 1, high) if number not in unknown]):
        middle = (low + high) / 2
        number = min(left, key=lambda candidate: abs(candidate - middle))
        step = bisector.step(search.versions[number])
        if step.answer == StepAnswer.UNKNOWN:
            unknown[number] = step.why
        elif step.answer == StepAnswer.BAD:
            high = number
        else:
            low = number
    why = "; ".join(
        f"{search.versions[number]} {unknown[number]}" for number in unknown if low < number < high
    )
    if high - low > 1:
        why = search.stuck or why
    return Culprit(search.versions[low], search.versions[high], probability(search.steps), why)


def probability(steps: Sequence[Step]) -> float:
    """That every step was right."""
    known = [step for step in steps if step.answer != StepAnswer.UNKNOWN]
    return math.prod(max(step.bad, 1 - step.bad) for step in known)
