"""Proving what a difference costs: each is set back on the board and measured in turn with the state of the
bad run. A round is a cold boot, so that nothing of it stays, whatever ends it.
"""

import glob
import math
import secrets
import shlex
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.boards.board import Board
from evmperf.explain import facts
from evmperf.explain.answers import Answer
from evmperf.judge import paired
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import MeasureRound, besides, measure_block
from evmperf.measure.runs import spool
from evmperf.measure.state.finding import Finding
from evmperf.model import anytime
from evmperf.model.errors import LabError, UsageError
from evmperf.model.results import Result
from evmperf.model.state import State
from evmperf.model.stats import rounded

_NOTHING = 0.2
"""Part of the loss, by logarithms, below which blocks say that it is something else."""
_WHOLE = 0.5
"""Part of it from which on what was set back is what it is."""
_LEAST_BLOCKS = 2
"""One block alone may be a busy host's."""
_DISK = (
    "q=$(readlink -f /sys/class/block/$(basename $(readlink -f {scratch}))); "
    "[ ! -e $q/partition ] || q=${{q%/*}}; {command}"
)


@dataclass(frozen=True)
class Proved:
    """What the board answered, in a sentence; `found` are the settings that cost the figure, together,
    `unset` those that no command sets back.
    """

    sentence: str
    found: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


class _Spent(Exception):
    """The time is spent."""


@dataclass
class Proving:
    """The trials of one figure of a case: `measure` measures a round, `tell` hears what each trial says."""

    folder: Path
    board: Board
    file: str
    """The board file, as pytest gets it."""
    result: Result
    answer: Answer
    budget_s: float
    measure: MeasureRound
    tell: Callable[[str], None] = print
    _trials: int = 0
    _refused: dict[str, str] = field(default_factory=dict)
    """Settings whose command failed on the board, and how."""

    def __post_init__(self) -> None:
        """Begin the time; raises UsageError where there is nothing to set back, or nothing puts it back."""
        if self.board.power != "switch":
            raise UsageError(
                f"{self.file} has no power switch: --prove boots the board between its rounds, which puts "
                f"back what it sets; name NetworkPowerPort, or set the differences back by hand"
            )
        self._ends = time.monotonic() + self.budget_s
        by_subject: dict[str, Finding] = {}
        for one in self.answer.causes:
            if one.back:
                by_subject.setdefault(one.subject, one)
        self._settings = [*by_subject.values()]
        if not (self.answer.theirs and self._settings):
            raise UsageError(
                f"{self.answer.benchmark} {self.answer.case}: no difference was read that a command sets "
                f"back; without --prove, why lists the others"
            )

    def prove(self) -> Proved:
        """Try the most probable difference, then all together, then halves of them. Raises what
        `evmperf.judge.rounds.measure_block` does.
        """
        settable = {one.subject for one in self._settings}
        read = dict.fromkeys(one.subject for one in self.answer.causes if one.otherwise or one.fact)
        left = [subject for subject in read if subject not in settable]
        try:
            found, sentence = self._search()
        except _Spent as spent:
            minutes = self.budget_s / 60
            found, sentence = [], f"undecided after {minutes:.0f} min ({spent}): a longer --prove tells more"
        left += [f"{rule} ({why})" for rule, why in self._refused.items()]
        return Proved(sentence, tuple(one.subject for one in found), tuple(left))

    def _search(self) -> tuple[list[Finding], str]:
        first, *others = self._settings
        if (said := self._trial([first])) is not None and said.is_it:
            return [first], said.sentence
        if said and said.is_gone:
            return [], said.sentence
        if not others:
            return [], said.sentence if said else f"{first.subject} cannot be set"
        together = self._trial([first, *others])
        if together is None or not together.is_it:
            among = f"none of the {len(self._settings)} differences, nor all of them together"
            return [], f"{among}: {together.span if together else 'nothing could be set'}"
        within, sentence = [first, *others], together.sentence
        while len(within) > 1:
            half = len(within) // 2
            parts = (within[:half], within[half:])
            # The first alone was tried.
            trials = ((part, self._trial(part)) for part in parts if part != [first])
            hit = next(((part, said) for part, said in trials if said and said.is_it), None)
            if hit is None:
                break  # it takes some of both halves
            within, sentence = hit[0], hit[1].sentence
        return within, sentence

    def _trial(self, back: Sequence[Finding]) -> "_Trial | None":
        """Measure these settings as in the good run beside all as in the bad one; None where none of them can
        be set. Raises _Spent.
        """
        self._trials += 1
        while wanted := [one for one in back if one.subject not in self._refused]:
            try:
                trial = self._measured(wanted)
            except LabError as error:
                failed = [
                    one.subject for one in self._settings if any(self._on(w) in str(error) for w in one.back)
                ]
                if not failed:
                    raise
                self._refused |= dict.fromkeys(failed, str(error)[:200])
                continue
            if trial:
                self.tell(trial.sentence)
                return trial
        return None

    def _measured(self, back: Sequence[Finding]) -> "_Trial | None":
        """Measure blocks until they tell; None where the board had another setting than it was given."""
        subjects = {one.subject for one in back}
        settings = [one for one in self._settings if one.subject not in self._refused]
        sides = {
            "a": [self._on(one.back[0]) for one in settings],
            "b": [self._on(one.back[one.subject in subjects]) for one in settings],
        }
        here, answer = self.folder / f"{self._trials}", self.answer
        key = (answer.benchmark, answer.case, answer.metric)
        experiment = Experiment(
            id=self.folder.name,
            boards=[self.file],
            sides=sides,
            seed=secrets.token_hex(8),
            metrics=[glob.escape("/".join(key))],
            select=self.result.benchmark,
            profile=self.result.profile,
            boots=1,
            leave_out=besides(
                [self.result.benchmark], self.result.profile, {f"{answer.benchmark}/{answer.case}"}
            ),
        )
        here.mkdir(parents=True, exist_ok=True)
        names = ", ".join(one.subject for one in back)
        while True:
            began = time.monotonic()
            measure_block(here, experiment, self.measure)
            self._refused |= self._unlike(experiment, settings, subjects)
            if self._refused.keys() & {one.subject for one in settings}:
                return None
            pairs = [(a.value, b.value) for a, b in experiment.pairs() if a.value and b.value]
            trial = _Trial(names, answer, tuple((a, b) for a, b in pairs if a and b))
            if trial.decided:
                return trial
            now = time.monotonic()
            if now + (now - began) > self._ends:
                raise _Spent(trial.so_far if trial.pairs else "nothing was measured")

    def _unlike(
        self, experiment: Experiment, settings: Iterable[Finding], back: Collection[str]
    ) -> dict[str, str]:
        """Settings that a round's board did not have as it should, and what it had."""
        unlike = {}
        for entry in experiment.rounds:
            state = _state(self.folder / entry.run, self.answer) if entry.run else None
            for one in settings:
                if state is None:
                    break
                is_back = entry.side == "b" and one.subject in back
                if one.rule == "beside":
                    said = {**state.shown, **state.changed}.values()
                    if not is_back and one.subject.removeprefix("process ") not in said:
                        unlike[one.subject] = f"it did not work in {entry.run}"
                    continue
                value = facts.value_of(state, one.fact)
                text = facts.command(one.fact, value)
                if text and text != one.back[is_back].removeprefix("run:"):
                    unlike[one.subject] = f"it was {value} in {entry.run}"
        return unlike

    def _on(self, word: str) -> str:
        """A word of a variation for this board: its port, and its disk's folder in sysfs."""
        driver = self.result.driver
        if "INTERFACE" in word:
            word = word.replace("INTERFACE", self.board.options.cable(driver).interface)
        if "$q" in word:
            command = word.removeprefix("run:")
            scratch = shlex.quote(self.board.text(driver, "scratch"))
            return "run:" + _DISK.format(scratch=scratch, command=command)
        return word


def _state(run: Path, answer: Answer) -> State | None:
    """What a round's board showed around the case; None where nothing was read."""
    results = spool.results_in(run) if run.is_dir() else ()
    named = (one for one in results if (one.benchmark, one.case) == (answer.benchmark, answer.case))
    return next((one.state for one in named), None)


@dataclass(frozen=True)
class _Trial:
    """What the blocks say of some settings: pairs of the figure as in the bad run, and with them set back."""

    names: str
    answer: Answer
    pairs: tuple[tuple[float, float], ...]

    @property
    def part(self) -> float:
        """The part of the loss that came back, by logarithms."""
        ours, theirs = self.answer.ours or 1.0, self.answer.theirs or 1.0
        gained = statistics.median(math.log(b / a) for a, b in self.pairs)
        return gained / math.log(theirs / ours)

    @property
    def is_gone(self) -> bool:
        """Whether the board has not lost anything, set as in the bad run."""
        ours, theirs = self.answer.ours or 1.0, self.answer.theirs or 1.0
        lost = statistics.median(math.log(a / theirs) for a, _ in self.pairs) / math.log(ours / theirs)
        return lost < _NOTHING

    @property
    def decided(self) -> bool:
        """Whether it is known well enough: two blocks tell what it is not."""
        if len(self.pairs) < _LEAST_BLOCKS:
            return False
        return self.part < _NOTHING or (
            len(self.pairs) >= anytime.FEWEST and self._evidence >= 1 / anytime.ALPHA
        )

    @property
    def _evidence(self) -> float:
        return paired.differ(self.pairs)

    @property
    def is_it(self) -> bool:
        """Whether they are what costs the figure."""
        return self.decided and self.part >= _WHOLE

    @property
    def span(self) -> str:
        """The figure on both sides."""
        a, b = (rounded(statistics.median(values)) for values in zip(*self.pairs, strict=True))
        return f"{a} to {b} {self.answer.unit}"

    @property
    def so_far(self) -> str:
        """The same where nothing is decided yet."""
        return f"{self.names} as in {self.answer.release}: {self.span} in {len(self.pairs)} blocks"

    @property
    def sentence(self) -> str:
        """What it says, for a person."""
        answer, count = self.answer, len(self.pairs)
        a, b = (rounded(statistics.median(values)) for values in zip(*self.pairs, strict=True))
        if self.is_gone:
            return (
                f"set as in the bad run, the board has {a} {answer.unit}: the loss is gone, or comes of what "
                f"no command sets"
            )
        better = sum((y > x) is ((answer.theirs or 0) > (answer.ours or 0)) for x, y in self.pairs)
        what = f"with {self.names} as in {answer.release}: {b} {answer.unit} instead of {a}"
        if self.part < _NOTHING:
            return f"{what}: not it"
        return f"{what}, in {better} of {count} blocks: {'this is it' if self.is_it else 'a part of it'}"
