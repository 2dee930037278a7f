"""Where earlier runs are read: the folder of results and the lab's history, or what a person names."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from evmperf.judge.published.releases import BASELINES
from evmperf.judge.published.source import PublishedRuns
from evmperf.measure.runs import kept
from evmperf.measure.runs.history import RunSource, SpoolFolder, WithHistory
from evmperf.model.errors import EvmperfError
from evmperf.publish.influx.client import Store, required
from evmperf.publish.influx.reader import InfluxRuns

INFLUX, HISTORY, PUBLISHED = "influx", "history", "published"
_HISTORY = "EVMPERF_HISTORY"


@contextlib.contextmanager
def opened(
    named: str, results: Path = Path(), lab: str | None = None, *, samples: bool = True
) -> Iterator[RunSource]:
    """The runs of that name, else those of `results` and of the lab's history, if one is named. Boards of
    other labs may have the same name, so who has a board names its `lab`. Published means are `samples` if
    wanted. Raises UsageError for InfluxDB or a history that is not named.
    """
    home = os.environ.get(_HISTORY, "")
    if named == INFLUX:
        with Store(required()) as store:
            yield InfluxRuns(store)
    elif named == PUBLISHED:
        yield PublishedRuns(samples)
    elif named not in ("", HISTORY):
        yield SpoolFolder(BASELINES if named == "baselines" else Path(named))
    elif not named and not home:
        yield SpoolFolder(results)
    else:
        history = SpoolFolder(kept.folder_of(home), lab)
        yield history if named else WithHistory(SpoolFolder(results), history)


def keep(folder: Path, complain: Callable[[str], None]) -> None:
    """Keep a run in the lab's history, if one is named. A run that cannot be kept is complained of, and may
    be copied there by hand.
    """
    if home := os.environ.get(_HISTORY):
        try:
            kept.keep(kept.folder_of(home), folder)
        except EvmperfError as error:
            complain(f"{folder}: is not in the lab's history: {error}")
