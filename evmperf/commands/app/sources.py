"""Where earlier runs are read: the folder of results and the lab's history, or what a person names."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from evmperf.judge.published.releases import BASELINES
from evmperf.judge.published.source import PublishedRuns
from evmperf.measure.runs import kept
from evmperf.measure.runs.history import RunSource, SpoolFolder, WithHistory
from evmperf.model.errors import EvmperfError
from evmperf.model.exits import ExitStatus, of_kind
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
    if named == INFLUX:
        with Store(required()) as store:
            yield InfluxRuns(store)
    elif named == PUBLISHED:
        yield PublishedRuns(samples)
    elif named not in ("", HISTORY):
        yield SpoolFolder(BASELINES if named == "baselines" else Path(named))
    elif not named and not has_history():
        yield SpoolFolder(results)
    else:
        history = SpoolFolder(kept.folder_of(os.environ.get(_HISTORY, "")), lab)
        yield history if named else WithHistory(SpoolFolder(results), history)


def has_history() -> bool:
    """Whether the environment names a history; without a name none is used."""
    return bool(os.environ.get(_HISTORY))


def keep(folders: Sequence[Path], complain: Callable[[str], None]) -> tuple[int, ExitStatus]:
    """Keep runs in the lab's history; returns how many are new or have more than before, and how it
    went. What cannot be kept is complained of; the folders stay, and may be copied there by hand.
    """
    new, status = 0, ExitStatus.OK
    for folder in folders:
        try:
            new += kept.keep(kept.folder_of(os.environ.get(_HISTORY, "")), folder)
        except EvmperfError as error:
            complain(f"{folder}: is not in the lab's history: {error}")
            status = of_kind(error.kind)
    return new, status
