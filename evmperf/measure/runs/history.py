"""Earlier runs, from wherever they are kept."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from evmperf.measure.runs import spool
from evmperf.model.errors import UsageError
from evmperf.model.results import Result
from evmperf.model.run import Run
from evmperf.model.units import counted

GUIDE = "guide"
"""Kind of the runs that are figures of a published guide."""
ADDRESSES = ("report", "job", "pipeline")
"""What the point of a run leads to, as the fields `report_url` and so on."""
UNKNOWN = "unknown"
"""The release of a run that has none: a tag cannot be empty."""


_T = TypeVar("_T")


@dataclass(frozen=True)
class StoredRun:
    """A run, with a way to read its results: there may be many, and few of them wanted."""

    run: Run
    results: Callable[[], list[Result]]
    folder: Path | None = None
    """Where its raw files are; None in a database."""


class RunSource(Protocol):
    """A source of earlier runs: a folder of spools, a database. Methods raise UsageError or LabError."""

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """The runs of a board without published guides, or those of all boards with them, oldest first."""


@dataclass(frozen=True)
class SpoolFolder:
    """The runs below one folder, as `--results` names it, of one `lab` or of all."""

    results: Path
    lab: str | None = None

    def __str__(self) -> str:
        return f"{self.results}/"

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See RunSource. Each folder without a readable run is named, and left out."""
        entries = []
        for path in self.results.glob("*/run.json"):
            try:
                entry = in_folder(path.parent)
            except UsageError as error:
                spool.leave_out(str(error))
                continue
            if self.lab not in (None, entry.run.lab):
                continue
            if board is None or (entry.run.board == board and entry.run.kind != GUIDE):
                entries.append(entry)
        return sorted(entries, key=lambda entry: by_age(entry.run))


def in_folder(folder: Path) -> StoredRun:
    """The run in a folder; raises UsageError when there is none."""
    return StoredRun(spool.read_run(folder), partial(spool.read_results, folder), folder)


def by_age(run: Run) -> tuple[int, str]:
    """What runs sort by: the oldest first."""
    return run.started_ns, run.id


class WithHistory:
    """The runs of another source and those of the history; of a run in both, the other's."""

    def __init__(self, source: RunSource, history: RunSource) -> None:
        self.sources: Sequence[RunSource] = (source, history)

    def __str__(self) -> str:
        return " and ".join(map(str, self.sources))

    def runs(self, board: str | None = None) -> list[StoredRun]:
        """See RunSource."""
        entries = (entry for source in reversed(self.sources) for entry in source.runs(board))
        once = {(entry.run.lab, entry.run.board, entry.run.id): entry for entry in entries}
        return sorted(once.values(), key=lambda entry: by_age(entry.run))


def run_folder(given: str, results: Path, *others: Path) -> Path:
    """The folder of a run: itself, or as `among` has it of those below `results`, or by its name of those
    below another folder.

    Raises UsageError for a run that does not exist or is ambiguous.
    """
    if _BACK.fullmatch(given):
        runs = SpoolFolder(results).runs()
        if not runs:
            raise UsageError(f"{results}: holds no runs; measure with pytest --lg-env BOARD.yaml")
        return among(given, {entry.folder.name: entry.folder for entry in runs if entry.folder}, results)
    for folder in (Path(given), *(place / given for place in (results, *others))):
        if (folder / "run.json").is_file():
            return folder
    folders = sorted({path.parent for place in (results, *others) for path in place.glob("*/run.json")})
    return among(given, {folder.name: folder for folder in folders}, results)


def among(given: str, runs: Mapping[str, _T], where: object) -> _T:
    """One of some runs, oldest first, by its name or an unambiguous beginning of it; `last`, or `last~2`
    for the second before the last. Raises UsageError, which names `where` they are, for none and several.
    """
    if back := _BACK.fullmatch(given):
        if int(back[1] or 0) >= len(runs):
            raise UsageError(f"{given}: {where} holds only {counted(len(runs), 'run')}")
        return list(runs.values())[-1 - int(back[1] or 0)]
    begun = [name for name in runs if given and name.startswith(given)]
    if len(begun) > 1 and given not in runs:
        names = ", ".join(begun[-3:])
        raise UsageError(f"{given!r} fits {len(begun)} runs, among them {names}: type more of the name")
    if not begun:
        raise UsageError(f"no run {given!r}, neither a folder nor in {where}; `evmperf history` lists them")
    return runs[given if given in runs else begun[0]]


_BACK = re.compile(r"last(?:~([0-9]{1,6}))?")
