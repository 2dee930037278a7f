"""The one loop of A/B, confirmation and bisection: blocks of rounds, one of each side, in random order."""

import fnmatch
from collections.abc import Callable, Sequence

from evmperf.model.errors import BoardError, LabError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.regress.experiment import INTERRUPTED, NOTHING, Experiment, Round
from evmperf.regress.sessions import Sessions, WantedSession
from evmperf.runs import spool

_FRUITLESS = 3
"""Blocks in a row without both compared sides after which the board is what is broken."""

MeasureRound = Callable[[Experiment, Round, Sequence[str]], None]
"""Fills in what a round gave, without some cases; raises LabError, or KeyboardInterrupt."""


def on_a_board(sessions: Sessions, have: Callable[[str], None] = lambda board: None) -> MeasureRound:
    """Measures rounds with sessions; `have` holds a board and lets go of any other."""

    def measure(experiment: Experiment, entry: Round, leave_out: Sequence[str]) -> None:
        have(experiment.board)
        name = f"{experiment.word}={experiment.id} block {entry.block} side {entry.side} {entry.version}"
        session = sessions.measure(
            WantedSession(
                experiment.board,
                experiment.words(entry),
                experiment.select,
                experiment.profile,
                kind=experiment.word,
                facts=(name.rstrip(),),
                boots=experiment.boots,
                leave_out=[*experiment.leave_out, *leave_out],
            )
        )
        entry.status, entry.seconds = session.status, session.seconds
        if session.status == ExitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        if session.status in (ExitStatus.LAB_BROKEN, ExitStatus.INTERNAL):
            entry.left_out = "the lab was broken"
            raise LabError(sessions.last_words())
        if session.run and (results := spool.read_results(sessions.folder / session.run)):
            entry.run = session.run
            found = figures(results).items()
            entry.value = next((f.centre for key, f in found if matches(key, experiment.metrics)), None)
        entry.left_out = "" if experiment.counts(entry) else f"{NOTHING}: {sessions.last_words()}"

    return measure


def matches(key: Key, patterns: Sequence[str]) -> bool:
    """Whether a metric is one of `benchmark/case/metric`, in which `*` stands for anything."""
    return any(fnmatch.fnmatchcase("/".join(key), pattern) for pattern in patterns)


class InTurn:
    """Measures blocks of an experiment; `keep` saves it and is called after each round, so that a later
    call goes on after whatever ended this one.
    """

    def __init__(
        self, experiment: Experiment, measure: MeasureRound, keep: Callable[[Experiment], None]
    ) -> None:
        self._experiment, self._measure, self._keep = experiment, measure, keep
        experiment.leave_out_halves(INTERRUPTED)
        experiment.ended = ""

    def block(self, version: str = "", leave_out: Sequence[str] = ()) -> None:
        """Measure one block: both compared sides, and the third if there is a version.

        Raises LabError when the lab is broken, BoardError when several blocks in a row did not have both
        compared sides, KeyboardInterrupt as it comes.
        """
        experiment, number = self._experiment, self._experiment.next_block
        compared = experiment.compared
        for side in experiment.order(number, [*experiment.sides] if version else compared):
            asked = "" if side in compared else version
            entry = Round(number, side, asked, experiment.board, left_out=INTERRUPTED)
            experiment.rounds.append(entry)
            self._keep(experiment)
            try:
                self._measure(experiment, entry, leave_out)
            finally:
                self._keep(experiment)
        experiment.leave_out_halves()
        self._keep(experiment)
        self._check_sides()

    def _check_sides(self) -> None:
        experiment = self._experiment
        last = range(experiment.next_block - _FRUITLESS, experiment.next_block)
        tried = [r for r in experiment.rounds if r.block in last and r.board == experiment.board]
        failed = [entry for entry in tried if entry.failed and entry.side in experiment.compared]
        if len({entry.block for entry in failed}) < _FRUITLESS:
            return
        sides = [entry.side for entry in failed]
        counts = ", ".join(f"{s.upper()} failed {sides.count(s)} times" for s in experiment.compared)
        raise BoardError(
            f"{experiment.board}: {_FRUITLESS} blocks in a row were not measured on both sides "
            f"({counts}): {failed[-1].left_out}"
        )
