"""The lab's history: what judging needs of each night, in a folder that outlives CI's workspaces.

Why a folder on the lab's host: docs/judging.md. A run is a folder as on the spool, without its raw
files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evmperf.model.errors import LabError
from evmperf.runs import spool
from evmperf.runs.history import Measured, RunSource, SpoolFolder, StoredRun, by_age

VARIABLE = "EVMPERF_HISTORY"
_FILES = ("results.jsonl", "run.json")
"""What is kept of a run; run.json comes last, so that a run that is there is whole."""


def folder(environment: Mapping[str, str]) -> Path:
    """Where the history is: EVMPERF_HISTORY, or in the user's own data."""
    if own := environment.get(VARIABLE):
        return Path(own).absolute()
    base = environment.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "evmperf" / "history"


def keep(run: Path, history: Path) -> Path:
    """Keep a run's figures and verdicts; one that is there already is replaced. Returns its folder.

    Runs may be kept at the same time by several jobs. Raises UsageError for no run, LabError when
    the disk does not take it.
    """
    target = history / spool.read_run(run).id
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            if (run / name).exists():
                with tempfile.NamedTemporaryFile(dir=target, delete=False) as scratch:
                    scratch.write((run / name).read_bytes())
                    scratch.flush()
                    os.fsync(scratch.fileno())
                shutil.copymode(run / name, scratch.name)
                Path(scratch.name).replace(target / name)
    except OSError as error:
        raise LabError(
            f"{history}: the history cannot be kept there: {error.strerror}; name another folder "
            f"with {VARIABLE}"
        ) from error
    return target


class WithHistory:
    """The runs of another source and those of the history; of a run in both, the other's."""

    def __init__(self, source: RunSource, history: Path) -> None:
        self._sources: Sequence[RunSource] = (SpoolFolder(history), source)

    def __str__(self) -> str:
        return " and ".join(str(source) for source in reversed(self._sources))

    def runs(self, board: str, limit: int | None = None) -> list[StoredRun]:
        """See RunSource."""
        found = _once(entry for source in self._sources for entry in source.runs(board, limit))
        return found if limit is None else found[max(0, len(found) - limit) :]

    def everything(self) -> list[StoredRun]:
        """See RunSource."""
        return _once(entry for source in self._sources for entry in source.everything())

    def figures(
        self, board: str, benchmark: str, metric: str, limit: int, case: str = ""
    ) -> list[Measured]:
        """See RunSource."""
        found: dict[str, list[Measured]] = {}
        for source in self._sources:
            of_source: dict[str, list[Measured]] = {}
            for figure in source.figures(board, benchmark, metric, limit, case):
                of_source.setdefault(figure.run.id, []).append(figure)
            found |= of_source
        newest = sorted(found.values(), key=lambda figures: by_age(figures[0].run))[-limit:]
        return [figure for figures in newest for figure in figures]


def _once(entries: Iterable[StoredRun]) -> list[StoredRun]:
    """Each run once, oldest first."""
    known = {entry.run.id: entry for entry in entries}
    return sorted(known.values(), key=lambda entry: by_age(entry.run))
