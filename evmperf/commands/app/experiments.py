"""The blocks of an A/B, measured on a board that is held meanwhile."""

from collections.abc import Callable
from pathlib import Path

from evmperf.judge import ab as sides
from evmperf.judge import experiment
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import Sessions
from evmperf.lab.keeping.claim import Holding
from evmperf.model.change import Comparison


def in_turn(
    folder: Path,
    plan: Experiment,
    wait_s: float,
    tell: Callable[[str], None],
    show: sides.Show = lambda so_far: None,
) -> Comparison:
    """Measure the blocks of an A/B on a board that is held meanwhile."""
    sessions = Sessions(folder)
    with experiment.held(folder), Holding(plan.id, wait_s) as holding:
        holding.have(plan.board)
        tell(f"measuring into {folder}")
        try:
            sessions.wait_for_others()
            return sides.go_on(folder, plan, sessions, show)
        except BaseException:
            tell(f"to go on: evmperf ab --resume {folder}")
            raise
