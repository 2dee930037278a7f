"""Earlier runs, from wherever they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evmperf import spool
from evmperf.errors import UsageError
from evmperf.model import Result
from evmperf.spool import Run
from evmperf.stats import Summary, summarise

GUIDE = "guide"
"""Kind of the runs that are figures of a published guide."""


@dataclass(frozen=True)
class RecordedRun:
    """A run with its results."""

    run: Run
    results: list[Result]


@dataclass(frozen=True)
class Figure:
    """What one run measured of one metric of one case."""

    run: Run
    case: str
    unit: str
    summary: Summary


class RunSource(Protocol):
    """Where earlier runs can be read: a folder of spools, a database.

    Its methods raise UsageError or LabError when the runs cannot be read.
    """

    def runs(self, board: str, limit: int) -> list[RecordedRun]:
        """The newest `limit` runs of a board, oldest first; published guides are no history."""

    def figures(
        self, board: str, benchmark: str, metric: str, limit: int, case: str = ""
    ) -> list[Figure]:
        """One metric over the last `limit` runs, oldest first; published figures are left out.

        Takes memory for what it returns, not for what it goes through.
        """


def figures_of(run: Run, values: Mapping[tuple[str, str], list[float]]) -> list[Figure]:
    """The figures of a run from its values by case and unit."""
    return [Figure(run, case, unit, summarise(v)) for (case, unit), v in values.items()]


class SpoolFolder:
    """The runs below one folder, as `--results` names it. Folders without a readable run are left
    out.
    """

    def __init__(self, results: Path) -> None:
        self.results = results

    def __str__(self) -> str:
        return f"{self.results}/"

    def folders(self, board: str, limit: int | None = None) -> list[tuple[Path, Run]]:
        """Folders and runs of a board, the newest `limit` (None: all), oldest first."""
        found = []
        for path in self.results.glob("*/run.json"):
            try:
                run = spool.read_run(path.parent)
            except UsageError:
                continue
            if run.board == board and run.kind != GUIDE:
                found.append((path.parent, run))
        found.sort(key=lambda entry: (entry[1].started_ns, entry[1].id))
        return found if limit is None else found[max(0, len(found) - limit) :]

    def runs(self, board: str, limit: int) -> list[RecordedRun]:
        """See RunSource."""
        return [
            RecordedRun(run, spool.read_results(folder))
            for folder, run in self.folders(board, limit)
        ]

    def figures(
        self, board: str, benchmark: str, metric: str, limit: int, case: str = ""
    ) -> list[Figure]:
        """See RunSource."""
        found: list[Figure] = []
        for folder, run in self.folders(board, limit):
            values: dict[tuple[str, str], list[float]] = {}
            for record in spool.read_records(folder):
                if record.get("record") != "result" or record["benchmark"] != benchmark:
                    continue
                if case in ("", record["case"]):
                    for sample in record["samples"]:
                        if sample["metric"] == metric:
                            key = (record["case"], sample["unit"])
                            values.setdefault(key, []).append(sample["value"])
            found += figures_of(run, values)
        return found


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
