"""Earlier runs of a board, wherever they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evmperf.errors import UsageError
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


def run_folder(given: str, results: Path, *others: Path) -> Path:
    """The folder of a run: itself, its name below `results` or another folder, or the `last` one.

    Raises UsageError for a run that is not there.
    """
    if given == "last":
        runs = [path.parent for path in results.glob("*/run.json")]
        if not runs:
            raise UsageError(f"{results}: holds no runs; measure with pytest --lg-env BOARD.yaml")
        return max(runs, key=lambda path: (path / "run.json").stat().st_mtime)
    for folder in (Path(given), *(place / given for place in (results, *others))):
        if (folder / "run.json").is_file():
            return folder
    raise UsageError(f"no run {given!r}, neither as a folder nor in {results}")
