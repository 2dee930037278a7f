"""What `--from` names: a folder of runs, the lab's history, the published figures, or InfluxDB."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from evmperf.influx import config
from evmperf.influx.client import Store
from evmperf.influx.reader import InfluxRuns
from evmperf.published.releases import BASELINES
from evmperf.runs.history import RunSource, SpoolFolder
from evmperf.store.source import StoredRuns, place

INFLUX, HISTORY, PUBLISHED = "influx", "history", "published"


@contextlib.contextmanager
def opened(given: str, samples: bool = True) -> Iterator[RunSource]:
    """The runs of that name, published means as samples if these are wanted; raises UsageError for
    InfluxDB when it is not configured.
    """
    if given == HISTORY:
        yield StoredRuns(place(os.environ))
        return
    if given == PUBLISHED:
        from evmperf.published.source import PublishedRuns  # noqa: PLC0415

        yield PublishedRuns(samples)
        return
    if given != INFLUX:
        yield SpoolFolder(BASELINES if given == "baselines" else Path(given))
        return

    with Store(config.required()) as store:
        yield InfluxRuns(store)
