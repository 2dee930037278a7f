"""Why a figure is lower than the published one, or than in another run's folder or guide."""

from pathlib import Path

from evmperf.explain import why
from evmperf.explain.why import Explained
from evmperf.measure.runs.history import in_folder
from evmperf.measure.runs.spool import results_in
from evmperf.model import plugins
from evmperf.publish.report import page

GUIDE_FILE = "guide:"
"""Before the file of a guide that a run is held against."""


def explain(folder: Path, case: str = "", against: str = "") -> Explained:
    """Why the figures of a run are worse than those of the run (its folder, or guide:FILE) `against`, or the
    published ones; see `evmperf.explain.why.explain`, which says what it raises.
    """
    if not against:
        return why.explain(folder, case)
    guide = against.removeprefix(GUIDE_FILE)
    board = in_folder(folder).run.board
    if guide == against:
        good = in_folder(Path(against))
    else:
        good = plugins.guide_reader("figures", against)(Path(guide), board)
    return why.explain(folder, case, good, Path(against).name)


def report(folder: Path, beside: Path | None = None) -> Path:
    """Write the report with the causes of its figures, and with the boots of the run `beside`; returns its
    path. Raises UsageError or LabError.
    """
    answers = explain(folder).answers if any(results_in(folder)) else ()
    return page.write(folder, answers, beside)
