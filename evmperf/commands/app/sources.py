"""Where earlier runs are read: the folder of results and the lab's store, or what a person names."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from evmperf.judge.published.releases import BASELINES
from evmperf.judge.published.source import PublishedRuns
from evmperf.measure.runs.history import RunSource, SpoolFolder, WithHistory
from evmperf.model.errors import EvmperfError
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.publish.influx import config
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.reader import InfluxRuns

INFLUX, HISTORY, PUBLISHED = "influx", "history", "published"


@contextlib.contextmanager
def opened(
    named: str, results: Path = Path(), lab: str | None = None, *, samples: bool = True
) -> Iterator[RunSource]:
    """The runs of that name, else those of `results` and of the lab's store, if one is named. Boards of
    other labs may have the same name, so who has a board names its `lab`. Published means are `samples` if
    wanted. Raises UsageError for InfluxDB or a store that is not named.
    """
    if named == INFLUX:
        with Store(config.required()) as store:
            yield InfluxRuns(store)
    elif named == PUBLISHED:
        yield PublishedRuns(samples)
    elif named not in ("", HISTORY):
        yield SpoolFolder(BASELINES if named == "baselines" else Path(named))
    elif not named and not has_store():
        yield SpoolFolder(results)
    else:
        from evmperf.publish.store.source import StoredRuns, place  # noqa: PLC0415  # DuckDB is slow to import

        stored = StoredRuns(place(os.environ), lab)
        yield stored if named else WithHistory(SpoolFolder(results), stored)


def has_store() -> bool:
    """Whether the environment names a store; without a name no store is used."""
    return bool(os.environ.get("EVMPERF_HISTORY"))


def keep(folders: Sequence[Path], complain: Callable[[str], None]) -> tuple[int, ExitStatus]:
    """Keep runs in the lab's store; returns how many are new or have more than before, and how it
    went. What cannot be kept is complained of; the folders stay, and `evmperf store add` keeps them later.
    """
    from evmperf.publish.store import files, source  # noqa: PLC0415  # DuckDB is slow to import

    new, status = 0, ExitStatus.OK
    for folder in folders:
        try:
            new += files.add(source.place(os.environ), folder)
        except EvmperfError as error:
            complain(f"{folder}: is not in the lab's store: {error}")
            status = of_kind(error.kind)
    return new, status
