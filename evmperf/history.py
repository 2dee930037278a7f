"""Earlier runs, from wherever they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evmperf import spool
from evmperf.errors import UsageError
from evmperf.model import Result
from evmperf.spool import Run


@dataclass(frozen=True)
class RecordedRun:
    """A run with its results."""

    run: Run
    results: list[Result]


class RunSource(Protocol):
    """Where earlier runs can be read: a folder of spools, a database."""

    def runs(self, board: str, limit: int, benchmark: str = "") -> list[RecordedRun]:
        """The last `limit` runs of a board, newest first; with `benchmark`, only its results.

        Raises UsageError or LabError when they cannot be read.
        """


class SpoolFolder:
    """The runs below one folder, as `--results` names it."""

    def __init__(self, results: Path) -> None:
        self.results = results

    def __str__(self) -> str:
        return f"{self.results}/"

    def runs(self, board: str, limit: int, benchmark: str = "") -> list[RecordedRun]:
        """See RunSource; folders that hold no readable run are left out."""
        found = []
        for path in self.results.glob("*/run.json"):
            try:
                run = spool.read_run(path.parent)
            except UsageError:
                continue
            if run.board == board:
                found.append((run.started_ns, run.id, run, path.parent))
        found.sort(key=lambda entry: entry[:2], reverse=True)
        return [
            RecordedRun(run, _results(folder, benchmark)) for _, _, run, folder in found[:limit]
        ]


def _results(folder: Path, benchmark: str) -> list[Result]:
    return [
        spool.result(record)
        for record in spool.read_records(folder)
        if record.get("record") == "result" and benchmark in ("", record["benchmark"])
    ]
