"""Where earlier runs are read: the folder of results and the lab's history, or what a person names. The
history is a folder of runs, each copied whole and renamed into place.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from evmperf.judge.published.releases import BASELINES
from evmperf.judge.published.source import PublishedRuns
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import RunSource, SpoolFolder, WithHistory
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.publish.influx.client import Store, load
from evmperf.publish.influx.reader import InfluxRuns

INFLUX, HISTORY, PUBLISHED = "influx", "history", "published"
_HISTORY = "EVMPERF_HISTORY"


@contextlib.contextmanager
def opened(
    named: str, results: Path = Path(), lab: str | None = None, *, samples: bool = True
) -> Iterator[RunSource]:
    """The runs of that name, else those of `results` and of the lab's history, if one is named. Boards of
    other labs may have the same name, so who has a board names its `lab`. Published means are `samples` if
    wanted. Raises UsageError for InfluxDB or a history that is not named, and for a folder that is none.
    """
    home = os.environ.get(_HISTORY, "")
    if named == INFLUX:
        with Store(load()) as store:
            yield InfluxRuns(store)
    elif named == PUBLISHED:
        yield PublishedRuns(samples)
    elif named not in ("", HISTORY):
        folder = BASELINES if named == "baselines" else Path(named)
        if not folder.is_dir():
            raise UsageError(f"{named}: is no folder of runs: name one, or {HISTORY}, {INFLUX}, {PUBLISHED}")
        yield SpoolFolder(folder)
    elif not named and not home:
        yield SpoolFolder(results)
    else:
        history = SpoolFolder(history_of(home), lab)
        yield history if named else WithHistory(SpoolFolder(results), history)


def history_of(named: str) -> Path:
    """The folder that EVMPERF_HISTORY names; raises UsageError for none and for a file."""
    if not named:
        raise UsageError(f"{_HISTORY} is not set: name the folder of the lab's history")
    if "://" in named or Path(named).is_file():
        raise UsageError(f"{named}: {_HISTORY} names a file or an address: name a folder of runs")
    return Path(named)


def keep(folder: Path, complain: Callable[[str], None]) -> None:
    """Keep a run in the lab's history, if one is named. A run that cannot be kept is complained of, and may
    be copied there by hand.
    """
    if home := os.environ.get(_HISTORY):
        try:
            copy(history_of(home), folder)
        except EvmperfError as error:
            complain(f"{folder}: is not in the lab's history: {error}")


def copy(history: Path, folder: Path) -> None:
    """Copy a run into a history, unless it has all of it. Raises LabError when the history takes nothing,
    UsageError for a run that is still measured or cannot be read.
    """
    if spool.is_live(folder):
        raise UsageError(f"{folder}: is still being measured; it is kept when its session has ended")
    run = spool.read_run(folder)
    target = history / run.id
    if target.resolve() == folder.resolve() or _content(target) == _content(folder):
        return
    with spool.new_folder(history) as scratch:
        try:
            shutil.copytree(folder, scratch / "new")
            if target.exists():
                target.rename(scratch / "before")
            (scratch / "new").rename(target)
        except OSError as error:
            raise LabError(f"{history}: cannot keep {folder.name}: {error.strerror or error}") from None


def _content(folder: Path) -> list[int]:
    """Sizes of what a run grows by; runs are never rewritten."""
    files = (folder / name for name in (spool.RECORDS, spool.VERDICTS))
    return [file.stat().st_size if file.is_file() else -1 for file in files]
