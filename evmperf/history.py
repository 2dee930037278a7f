"""Earlier runs of a board, wherever they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evmperf.model import Result
from evmperf.spool import Run, read_results, read_run


@dataclass(frozen=True)
class RecordedRun:
    """A run and its results."""

    run: Run
    results: list[Result]


class RunSource(Protocol):
    """Where earlier runs come from."""

    def runs(self, board: str, limit: int) -> list[RecordedRun]:
        """The newest `limit` runs of a board, oldest first."""
        ...


class SpoolFolder:
    """Runs in the folders below one folder."""

    def __init__(self, results: Path) -> None:
        self.results = results

    def folders(self, board: str, limit: int | None = None) -> list[tuple[Path, Run]]:
        """Folders and runs of a board, the newest `limit` (None: all), oldest first; imported
        guides are no history.
        """
        found = [
            (path.parent, run)
            for path in self.results.glob("*/run.json")
            if (run := read_run(path.parent)).board == board and run.kind != "guide"
        ]
        found.sort(key=lambda entry: (entry[1].started_ns, entry[1].id))
        return found if limit is None else found[max(0, len(found) - limit) :]

    def runs(self, board: str, limit: int) -> list[RecordedRun]:
        """The newest `limit` runs of a board, oldest first."""
        return [RecordedRun(run, read_results(path)) for path, run in self.folders(board, limit)]
