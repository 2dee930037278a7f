"""Measured again: one case of a run, in a session of its own, or the blocks of an A/B."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from msgspec import structs

from evmperf.boards import board as boards
from evmperf.explain.answers import Answer
from evmperf.explain.proving import Proved, Proving
from evmperf.judge import ab, experiment
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import LOG, Sessions, besides
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import placement, variables
from evmperf.measure import boardfile
from evmperf.model.change import Comparison
from evmperf.model.errors import LabError, UsageError
from evmperf.model.replies import WantedSession
from evmperf.model.results import Result


def measure(results: Path, result: Result, session: WantedSession) -> tuple[Path, int]:
    """Measure one case as it was measured; the new run's folder, and the session's exit status. Raises
    UsageError for a case that cannot be measured here, LabError where nothing was measured.
    """
    mine = f"{result.benchmark}/{result.case}"
    if mine not in besides([result.benchmark], result.profile, ()):
        raise UsageError(f"{result.benchmark} has no case {result.case!r} here")
    leave_out = besides([result.benchmark], result.profile, {mine})
    results.mkdir(parents=True, exist_ok=True)
    asked = structs.replace(
        session, select=result.benchmark, profile=result.profile, leave_out=tuple(leave_out)
    )
    done = Sessions(results).measure(asked)
    if not done.run:
        raise LabError(f"nothing was measured (exit status {done.status}): see {results / LOG}")
    return results / done.run, done.status


def prove(
    folder: Path, board: str, result: Result, answer: Answer, *, budget_s: float, tell: Callable[[str], None]
) -> Proved:
    """Set back, on a board that is held meanwhile, what differs from a good run; raises as `Proving` does."""
    sessions = Sessions(folder)
    proving = Proving(folder, boardfile.named(board), board, result, answer, budget_s, sessions.round, tell)
    wanted = placement(boards.find(board))
    with (
        experiment.held(folder),
        closing(Claim.take(wanted, folder.name, tell=tell)) as claim,
        variables(claim.environment),
    ):
        tell(f"measuring into {folder}")
        try:
            return proving.prove()
        except KeyboardInterrupt:
            tell("interrupted: the board is off, and boots as it did before")
            raise


def in_turn(
    folder: Path,
    plan: Experiment,
    wait_s: float,
    tell: Callable[[str], None],
    show: ab.Show = lambda so_far: None,
) -> Comparison:
    """Measure the blocks of an A/B on a board that is held meanwhile."""
    sessions = Sessions(folder)
    wanted = placement(boards.find(plan.board))
    with (
        experiment.held(folder),
        closing(Claim.take(wanted, plan.id, wait_s=wait_s, tell=tell)) as claim,
        variables(claim.environment),
    ):
        tell(f"measuring into {folder}")
        try:
            sessions.wait_for_others()
            return ab.go_on(folder, plan, sessions, show)
        except BaseException:
            tell(f"to go on: evmperf ab --resume {folder}")
            raise
