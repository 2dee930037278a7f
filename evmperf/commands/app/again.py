"""Measured again: one case of a run, in a session of its own, or the blocks of an A/B."""

from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from evmperf.benchmarks import catalogue
from evmperf.explain.answers import Answer
from evmperf.explain.proving import Proved, Proving
from evmperf.judge import ab, experiment
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import LOG, Sessions
from evmperf.lab.keeping.claim import holding
from evmperf.measure import boardfile
from evmperf.model.change import Comparison
from evmperf.model.errors import LabError, UsageError
from evmperf.model.replies import WantedSession
from evmperf.model.results import Result


def measure(results: Path, result: Result, session: WantedSession) -> tuple[Path, int]:
    """Measure one case as it was measured; the new run's folder, and the session's exit status. Raises
    UsageError for a case that cannot be measured here, LabError where nothing was measured.
    """
    cases = [case.label for case in catalogue.benchmark(result.benchmark).cases(result.profile)]
    if result.case not in cases:
        raise UsageError(f"{result.benchmark} has no case {result.case!r} here")
    others = tuple(f"{result.benchmark}/{case}" for case in cases if case != result.case)
    results.mkdir(parents=True, exist_ok=True)
    # As the ids of its tests begin: the name alone may be part of another's.
    only = {"select": f"[{result.benchmark}-", "profile": result.profile, "leave_out": others}
    done = Sessions(results).measure(structs.replace(session, **only))
    if not done.run:
        raise LabError(f"nothing was measured (exit status {done.status}): see {results / LOG}")
    return results / done.run, done.status


def prove(
    folder: Path, board: str, result: Result, answer: Answer, *, budget_s: float, tell: Callable[[str], None]
) -> Proved:
    """Set back, on a board that is held meanwhile, what differs from a good run; raises as `Proving` does."""
    sessions = Sessions(folder)
    proving = Proving(folder, boardfile.named(board), board, result, answer, budget_s, sessions.round, tell)
    with experiment.held(folder), holding(board, folder.name):
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
    with experiment.held(folder), holding(plan.board, plan.id, wait_s):
        tell(f"measuring into {folder}")
        try:
            sessions.wait_for_others()
            return ab.go_on(folder, plan, sessions, show)
        except BaseException:
            tell(f"to go on: evmperf ab --resume {folder}")
            raise
