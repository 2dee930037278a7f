"""What `--from` names: a folder of runs, the lab's history, the published figures, or InfluxDB."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from evmperf.published.releases import BASELINES
from evmperf.runs import kept
from evmperf.runs.history import RunSource, SpoolFolder

INFLUX, HISTORY = "influx", "history"


@contextlib.contextmanager
def opened(given: str) -> Iterator[RunSource]:
    """The runs of that name; raises UsageError for InfluxDB when it is not configured."""
    if given == HISTORY:
        yield SpoolFolder(kept.folder(os.environ))
        return
    if given != INFLUX:
        yield SpoolFolder(BASELINES if given == "baselines" else Path(given))
        return
    from evmperf.influx import config  # noqa: PLC0415  # what these import is slow
    from evmperf.influx.client import Store  # noqa: PLC0415
    from evmperf.influx.reader import InfluxRuns  # noqa: PLC0415

    with Store(config.required()) as store:
        yield InfluxRuns(store)
