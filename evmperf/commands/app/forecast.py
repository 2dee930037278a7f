"""How long a session will take: what its cases declare, boots, preparation and repeats."""

import contextlib
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.step import Measure, Step
from evmperf.boards.board import Board
from evmperf.model.errors import EvmperfError
from evmperf.model.repeats import Repeats
from evmperf.model.results import Case

_BOOT_S = 15.0
"""What a cold boot usually takes, until one was seen."""
_AROUND_S = 1.0
"""What a case usually takes beside its commands and boots."""
_LEAST, _MOST = 0.5, 5.0
"""How far what was measured may move what is declared: a guess stays one."""


class Forecast:
    """What the cases of a session take, in seconds; better with each that is done."""

    def __init__(
        self, cases: Sequence[tuple[Benchmark, Case]], board: Board, profile: str, repeats: Repeats
    ) -> None:
        self.boot_s = _BOOT_S
        """What a cold boot takes on this board."""
        done: set[str] = set()
        alone = [expected(benchmark, case, board, profile, done) for benchmark, case in cases]
        self._declared_s = [_AROUND_S + repeats.rounds * seconds for seconds, _ in alone]
        self.shared = [is_shared for _, is_shared in alone]
        """Whether all that a case measures is executed for a case before it."""
        places = [None, *(benchmark.place for benchmark, _ in cases)]
        self._boots = [
            (repeats.boots or benchmark.profiles[profile].repeats) * repeats.rounds
            if benchmark.place is Place.BOOT
            else int(before is not benchmark.place)
            for before, (benchmark, _) in zip(places, cases, strict=False)
        ]
        """Cold boots that a case takes: those it measures, or one to another prompt."""
        self._done_s = 0.0
        self._done_declared_s = 0.0

    def case_s(self, number: int) -> float:
        """What one case will take, numbers from 0."""
        ratio = self._done_s / self._done_declared_s if self._done_declared_s else 1.0
        ratio = min(_MOST, max(_LEAST, ratio))
        return self._declared_s[number] * ratio + self._boots[number] * self.boot_s

    def rest_s(self, number: int = 0) -> float:
        """What the cases from that number on will take."""
        return sum(self.case_s(each) for each in range(number, len(self._declared_s)))

    def learn(self, number: int, taken_s: float) -> None:
        """A case took so long, its boots among it."""
        self._done_s += max(0.0, taken_s - self._boots[number] * self.boot_s)
        self._done_declared_s += self._declared_s[number]


def expected(
    benchmark: Benchmark, case: Case, board: Board, profile: str, done: set[str]
) -> tuple[float, bool]:
    """Seconds that the commands of a case usually take by its own declaration, 0 for one that cannot be
    declared, of which the runner says why; and whether all that it measures is executed for a case before it.

    `done` is what earlier cases shared with others and measured: it takes no time any more. What
    this case adds is put there.
    """
    steps: Sequence[Step] = ()
    if benchmark.place is not Place.BOOT:
        with contextlib.suppress(EvmperfError):
            steps = benchmark.declared_steps(board, case, profile)
    keys = {benchmark.shared_key(step) for step in steps if isinstance(step, Measure)}
    is_shared = bool(keys) and "" not in keys and keys <= done
    seconds = 0.0
    for step in steps:
        key = benchmark.shared_key(step)
        if not key or key not in done:
            seconds += step.expect_s
        done.add(key)
    return seconds, is_shared
