"""The folder of a night below its results: what it measures until when, a log of each session, whose name is
its run's, and at the end the outcome. A killed night continues from it and from its runs.
"""

import contextlib
import fcntl
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from evmperf.commands.night.plan import Job, NightPlan, end_of
from evmperf.model.errors import LabError, UsageError

OUTCOME = "outcome.txt"
"""What is said at the end, written last: a night that has it has ended."""
_PLAN = "plan.yaml"


@dataclass
class NightFolder:
    """A night that this process measures, from `began` to at most `until` (seconds since the epoch)."""

    path: Path
    began: float
    until: float
    resumed: bool
    lock: BinaryIO

    def log(self, job: Job, run: str) -> Path:
        """Where the session of a run writes what it prints."""
        return self._of(job) / f"{run}.log"

    def runs(self, job: Job) -> list[str]:
        """The ids of the runs that were begun for a job, oldest first; not all came to be."""
        return sorted(log.stem for log in self._of(job).glob("*.log"))

    def _of(self, job: Job) -> Path:
        return self.path / f"job-{quote(job.name, safe='')}"


def open_night(plan: NightPlan, text: str, results: Path, *, fresh: bool) -> NightFolder:
    """The night of that plan (whose text is given) that has not ended, or a new one; raises UsageError when
    it goes on in another process, LabError for the disk.
    """
    now = float(int(time.time()))
    for path in [] if fresh else sorted(results.glob(f"night-{plan.name}-*"), reverse=True):
        if (path / OUTCOME).exists():
            break
        with contextlib.suppress(OSError, ValueError):
            began = datetime.strptime(path.name.rpartition("-")[2], "%Y%m%dT%H%M%S%z").timestamp()
            if (path / _PLAN).read_text(encoding="utf-8") == text and end_of(plan, began) > now:
                return _locked(path, plan, began, "")
    path = results / f"night-{plan.name}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    return _locked(path, plan, now, text)


def _locked(path: Path, plan: NightPlan, began: float, text: str) -> NightFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / _PLAN).open("a+b", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(text.encode())
    except BlockingIOError:
        raise UsageError(f"{path}: this night is going on in another process") from None
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from None
    return NightFolder(path, began, end_of(plan, began), resumed=not text, lock=file)
