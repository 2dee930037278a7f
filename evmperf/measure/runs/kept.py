"""The lab's history: a folder of runs, each copied whole and renamed into place."""

import shutil
import tempfile
from pathlib import Path

from evmperf.measure.runs import spool
from evmperf.model.errors import LabError, UsageError

_PARTS = ".parts"
"""Below the history: what is being copied, and what another copy replaced. No run is read there."""


def folder_of(named: str) -> Path:
    """The folder that EVMPERF_HISTORY names; raises UsageError for none and for a file."""
    if not named:
        raise UsageError("EVMPERF_HISTORY is not set: name the folder of the lab's history")
    if "://" in named or Path(named).is_file():
        raise UsageError(f"{named}: EVMPERF_HISTORY names a file or an address: name a folder of runs")
    return Path(named)


def keep(history: Path, folder: Path) -> bool:
    """Copy a run into the history, and say whether it is new there or has more than before. Raises LabError
    when the history takes nothing, UsageError for a run that is still measured or cannot be read.
    """
    if spool.is_live(folder):
        raise UsageError(f"{folder}: is still being measured; it is kept when its session has ended")
    run = spool.read_run(folder)
    target = history / run.id
    if target.resolve() == folder.resolve() or _content(target) == _content(folder):
        return False
    try:
        (history / _PARTS).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=history / _PARTS, prefix=f"{run.id}-") as scratch:
            copy, before = Path(scratch) / "new", Path(scratch) / "before"
            shutil.copytree(folder, copy)
            if target.exists():
                target.rename(before)
            copy.rename(target)
    except OSError as error:
        raise LabError(f"{history}: cannot keep {folder.name}: {error.strerror or error}") from None
    return True


def _content(folder: Path) -> list[int]:
    """Sizes of what a run grows by; runs are never rewritten."""
    files = (folder / name for name in (spool.RECORDS, spool.VERDICTS))
    return [file.stat().st_size if file.is_file() else -1 for file in files]
