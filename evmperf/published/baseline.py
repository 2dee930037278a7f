"""The published figures that come with the project, for a board."""

from collections.abc import Sequence

from evmperf.model.figures import Baseline, figures
from evmperf.model.run import Run
from evmperf.published import identity, record, source


def of_board(run: Run) -> Baseline | None:
    """The published figures of a run's board and operating system, of the newest release that is not
    after the run's (of the newest at all, where its release is not known); None if there are none.
    """
    return nearest(run, all_of_board(run))


def nearest(run: Run, found: Sequence[Baseline]) -> Baseline | None:
    """The one of `of_board` among those of `all_of_board`."""
    own = record.same_time(run.release)
    before = [b for b in found if own and record.same_time(b.published.release) <= own]
    return next(reversed(before or found), None)


def all_of_board(run: Run) -> list[Baseline]:
    """Those of every release, oldest first; none for virtual boards, never compared with real ones."""
    if run.facts.virtual:
        return []
    fitting = source.guides(identity.board(run.board), run.os)
    return [Baseline(run, entry.run, figures(entry.results())) for entry in fitting]
