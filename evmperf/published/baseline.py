"""The published figures that come with the project, for a board."""

from evmperf.model.figures import Baseline, figures
from evmperf.model.run import Run
from evmperf.published import identity, source
from evmperf.published import releases as gather


def of_board(run: Run) -> Baseline | None:
    """The newest published figures of a run's board and operating system; None if there are none,
    and always for virtual boards, which are never compared with real ones.
    """
    if gather.is_virtual(run):
        return None
    fitting = source.guides(identity.board(run.board), run.os)
    if not fitting:
        return None
    return Baseline(run, fitting[-1].run, figures(fitting[-1].results()))
