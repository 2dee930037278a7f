"""The published figures that come with the project, for a board."""

from __future__ import annotations

from evmperf.model.figures import Baseline, figures
from evmperf.model.run import Run
from evmperf.published import releases as gather


def of_board(run: Run) -> Baseline | None:
    """The newest published figures of a run's board and operating system; None if there are none,
    and always for virtual boards, which are never compared with real ones.
    """
    if gather.is_virtual(run):
        return None
    fitting = [
        e for e in gather.published() if e.run.board == run.board and e.run.os in (run.os, "")
    ]
    if not fitting:
        return None
    newest = max(fitting, key=lambda entry: gather.release_key(entry.run.release))
    return Baseline(run, newest.run, figures(newest.results()))
