"""Changes that people meant: `baselines/accepted.yaml` in the lab's folder, where evmperf is called."""

import fnmatch
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from evmperf.boards import yamlfile
from evmperf.measure.runs.spool import write_whole
from evmperf.model.errors import UsageError, one_line
from evmperf.model.figures import Key

FILE = Path("baselines") / "accepted.yaml"
_HEAD = "# Intended changes; `evmperf check --accept` adds to this, git shows who and when.\n"


@dataclass(frozen=True)
class Accepted:
    """A change of the metrics that `metric` matches, meant from the run `since` on.

    `metric` is `benchmark/case/metric`, in which `*` stands for anything; `since_ns` is when that
    run started, nanoseconds since the epoch.
    """

    metric: str
    board: str
    since: str
    since_ns: int
    why: str

    def covers(self, key: Key, board: str) -> bool:
        """Whether this is about a metric of a board."""
        return board == self.board and fnmatch.fnmatchcase("/".join(key), self.metric)


def read() -> list[Accepted]:
    """All marks of FILE, oldest first; raises UsageError for a damaged one."""
    if not FILE.exists():
        return []
    try:
        marks = [Accepted(**entry) for entry in yamlfile.read(FILE) or []]
    except TypeError as error:
        raise UsageError(f"{FILE}: is not a list of accepted changes: {one_line(error)}") from error
    return sorted(marks, key=lambda mark: mark.since_ns)


def add(mark: Accepted) -> None:
    """Add a mark to FILE, in place of an older one for the same metric and board; raises LabError."""
    kept = [m for m in read() if (m.metric, m.board) != (mark.metric, mark.board)]
    text = _HEAD + yaml.safe_dump([asdict(m) for m in [*kept, mark]], sort_keys=False, allow_unicode=True)
    write_whole(FILE.resolve(), text.encode())  # of a link its target


def pattern(text: str) -> str:
    """The pattern that a person means: a benchmark alone is all of its metrics."""
    return "/".join([*text.split("/"), "*", "*"][:3]) if text.count("/") < 2 else text


def latest(marks: Sequence[Accepted], key: Key, board: str) -> Accepted | None:
    """The newest mark about a metric."""
    return next((mark for mark in reversed(marks) if mark.covers(key, board)), None)
