"""Sides measured in turn, on disk: what was asked for, and every round, after each of them.

    results/<id>/experiment.json   an A/B
    results/<id>/search.json       a bisection: good, bad and a candidate (`evmperf.regress.search`)
    results/<id>/<run>/            one ordinary run a round
    results/<id>/rounds.log        what the measuring sessions said

Runs lie one folder deeper than others, so that no verdict takes a variation for history.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from evmperf.model.errors import LabError, UsageError

FILE = "experiment.json"
SCHEMA = 2
A, B = "a", "b"


@dataclass
class Round:
    """One run of one side. `left_out` says why it does not count, "" if it does; `status` is the
    session's exit status, `seconds` what it took. Of a bisection `version` is the candidate's, and
    `value` the metric's (None: not measured).
    """

    block: int
    side: str
    version: str = ""
    board: str = ""
    run: str = ""
    status: int = 0
    seconds: float = 0.0
    value: float | None = None
    left_out: str = ""


@dataclass(kw_only=True)
class Turns:
    """What was asked for, and how far it has come. `select` is pytest's -k, `boots` the cold boots
    of a case of boot times in each round (0: those of the profile), `seed` that of the order.
    """

    file: ClassVar[str]
    id: str
    seed: str
    select: str = ""
    profile: str = ""
    boots: int = 0
    rounds: list[Round] = field(default_factory=list)
    ended: str = ""
    schema: int = SCHEMA

    @property
    def spent_s(self) -> float:
        """Seconds that all rounds took."""
        return sum(entry.seconds for entry in self.rounds)

    @property
    def next_block(self) -> int:
        """The number of the block that comes next."""
        return max((entry.block for entry in self.rounds), default=-1) + 1

    def order(self, block: int, sides: Sequence[str]) -> list[str]:
        """The sides of a block in random order, the same each time one asks."""
        return sorted(sides, key=lambda side: hashlib.sha256(f"{self.seed}/{block}/{side}".encode()).digest())

    def save(self, folder: Path) -> None:
        """Write the state, so that a reader sees the old or the new and nothing between; raises
        LabError when the disk does not take it.
        """
        _write(folder / self.file, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the state; raises UsageError for a folder without one, or one of a later evmperf."""
        data = _read(folder / cls.file)
        for entry in data["rounds"]:
            entry.setdefault("side", entry.pop("label", ""))  # of schema 1
        return cls(**data | {"rounds": [Round(**entry) for entry in data["rounds"]], "schema": SCHEMA})


@dataclass(kw_only=True)
class Experiment(Turns):
    """An A/B. `board` is the board file as given to pytest, `sides` the words of each side's
    variation, `metrics` the patterns of the metrics that decide when it ends.
    """

    file: ClassVar[str] = FILE
    board: str
    sides: dict[str, list[str]]
    blocks: int = 20
    budget_s: float = 0.0
    """0: no budget but the blocks."""
    within: float = 0.02
    metrics: list[str] = field(default_factory=list)
    leave_out: list[str] = field(default_factory=list)
    """Cases that are not measured, as BENCHMARK/CASE."""

    def pairs(self) -> list[tuple[int, Round, Round]]:
        """The blocks of which both sides count."""
        good = {(entry.block, entry.side): entry for entry in self.rounds if not entry.left_out}
        blocks = sorted({block for block, _ in good})
        return [
            (block, good[block, A], good[block, B])
            for block in blocks
            if (block, A) in good and (block, B) in good
        ]

    def leave_out_halves(self, why: str) -> None:
        """Leave out the runs of a block whose other half is missing: the halves of a block must be
        measured one after the other.
        """
        whole = {block for block, _, _ in self.pairs()}
        for entry in self.rounds:
            if entry.block not in whole and not entry.left_out:
                entry.left_out = why


def _write(file: Path, data: dict[str, Any]) -> None:
    scratch = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(file)
    except OSError as error:
        raise LabError(f"{file}: cannot be written: {error.strerror}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file.parent}: there is nothing to resume ({error.strerror})") from error
    except ValueError as error:
        raise UsageError(f"{file}: is damaged: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise UsageError(f"{file}: states no schema; it is not an evmperf file")
    if data["schema"] > SCHEMA:
        raise UsageError(f"{file}: has schema {data['schema']}, this evmperf reads {SCHEMA}")
    return {"rounds": [], **data}


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only one who goes on with what is in a folder; raises UsageError for the second."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder}: another evmperf is at work on it") from None
        yield
