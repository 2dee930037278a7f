"""A bisection and its steps: an A/B of good and bad with a third side, the candidate.

First good and bad are compared until their difference is known (an A/B of one metric); without one
there is nothing to look for. Then each candidate is measured together with both, in random order
within blocks, until it is clear which of the two it is like (`evmperf.judge.paired`).
"""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from evmperf.judge.experiment import Experiment, Round
from evmperf.judge.paired import differ, likeness
from evmperf.judge.rounds import MeasureRound, measure_block
from evmperf.model import anytime
from evmperf.model.errors import BoardError, LabError, UsageError

FILE = "search.json"
GOOD, BAD, CANDIDATE = "good", "bad", "candidate"
MOST_BLOCKS = 60
"""Blocks, of the references or of one candidate, where nobody says otherwise."""
_DEAD = 2
"""Failures of a candidate in a row after which it cannot be told."""
_MOST_UNDECIDED = 3
"""Versions that all blocks allowed could not decide, after which no further one is tried."""


class StepAnswer(enum.StrEnum):
    """What a step says of a version."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "cannot tell"


@dataclass
class Step:
    """What was found out about a version: the probability that it is like the bad one."""

    version: str
    answer: StepAnswer
    bad: float
    blocks: int
    why: str = ""


@dataclass(kw_only=True)
class Bisection(Experiment):
    """An A/B of one metric with a third side, whose words have `{}` for the version; `versions` are a
    list, oldest first.
    """

    file: ClassVar[str] = FILE
    word: ClassVar[str] = "bisect"
    blocks: int = MOST_BLOCKS
    """Most blocks for one answer."""
    build: str = ""
    repository: str = ""
    """Where the versions are commits; they are then the good and the bad one alone."""
    versions: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def metric(self) -> str:
        """The metric that became worse, as BENCHMARK/CASE/METRIC."""
        return self.metrics[0]

    @property
    def stuck(self) -> str:
        """Why no further version is worth measuring, "" while one is."""
        unknown = [step for step in self.steps if step.answer is StepAnswer.UNKNOWN]
        undecided = sum(step.blocks >= self.blocks for step in unknown)
        if undecided < _MOST_UNDECIDED:
            return ""
        return (
            f"{self.blocks} blocks did not decide any of {undecided} versions: the difference is too "
            f"small for the noise; begin anew with more --rounds, or with a metric that repeats better"
        )

    def counts(self, entry: Round) -> bool:
        """Whether there is a value that has a logarithm."""
        return entry.value is not None and entry.value > 0

    def values(self, *sides: str, version: str = "") -> list[tuple[float, ...]]:
        """The metric of these sides, in blocks that have them all; with a candidate of that version."""
        return [
            tuple(entry.value or 0.0 for entry in block)
            for block in self.whole(*sides)
            if not version or block[-1].version == version
        ]

    def dead(self, version: str) -> bool:
        """Whether the last rounds of a candidate gave nothing."""
        tried = [r for r in self.rounds if (r.version, r.board) == (version, self.board)]
        return len(tried) >= _DEAD and all(entry.failed for entry in tried[-_DEAD:])


@dataclass
class Bisector:
    """Carries out the steps of a search; `keep` saves it, and is called after each round."""

    search: Bisection
    measure: MeasureRound
    keep: Callable[[Experiment], None]
    tell: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.search.resume()

    def calibrate(self) -> bool:
        """Measure good and bad in turn until their difference is known; False when there is none
        that as many blocks as are allowed could show. Raises LabError, BoardError.
        """
        while True:
            pairs = self.search.values(GOOD, BAD)
            if len(pairs) >= anytime.FEWEST and differ(pairs) >= 1 / anytime.ALPHA:
                return True
            if len(pairs) >= self.search.blocks:
                return False
            self._block("")
            self.tell(f"good against bad: {len(self.search.values(GOOD, BAD))} blocks")

    def step(self, version: str) -> Step:
        """Measure a version with good and bad until it is clear which it is like."""
        search = self.search
        for done in search.steps:
            if done.version == version:
                return done
        while True:
            likely = likeness(search.values(GOOD, BAD, CANDIDATE, version=version))
            if likely.blocks:
                self.tell(f"{version}: {likely.blocks} blocks, like bad with {likely.bad:.1%}")
            step = Step(version, StepAnswer.UNKNOWN, likely.bad, likely.blocks)
            if likely.decided:
                step.answer = StepAnswer.BAD if likely.bad > 0.5 else StepAnswer.GOOD
            elif search.dead(version):
                step.bad, step.why = 0.5, f"not measured {_DEAD} times in a row"
            elif likely.blocks >= search.blocks:
                step.why = f"neither like good nor like bad after {likely.blocks} blocks"
            else:
                self._block(version)
                continue
            search.steps.append(step)
            self.keep(search)
            return step

    def _block(self, version: str) -> None:
        """Measure a block on today's board, or on another of its kind when that one is broken."""
        search = self.search
        try:
            measure_block(search, self.measure, self.keep, version)
        except (LabError, BoardError) as error:
            if len(search.boards) == 1:
                raise
            gone = search.boards.pop(0)
            self.keep(search)
            self.tell(f"{gone} is given up ({error}); good and bad anew on {search.board}")
            if not self.calibrate():
                raise BoardError(f"{search.board}: shows no difference between good and bad") from error


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
        if step.answer is StepAnswer.UNKNOWN:
            unknown[number] = step.why
        elif step.answer is StepAnswer.BAD:
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
    decided = [step for step in steps if step.answer is not StepAnswer.UNKNOWN]
    return math.prod(max(step.bad, 1 - step.bad) for step in decided)
