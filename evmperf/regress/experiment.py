"""An A/B on disk: what was asked for, and every round that was measured, after each of them.

    results/<id>/experiment.json   this
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
from typing import Any

from evmperf.model.errors import LabError, UsageError

FILE = "experiment.json"
SCHEMA = 1
A, B = "a", "b"


@dataclass
class Round:
    """One run of one side. `left_out` says why it does not count, "" if it does; `status` is the
    session's exit status, `seconds` what it took.
    """

    block: int
    side: str
    run: str = ""
    status: int = 0
    seconds: float = 0.0
    left_out: str = ""


@dataclass
class Experiment:
    """What was asked for, and how far it has come. `board` is the board file as given to pytest,
    `sides` the words of each side's variation, `select` pytest's -k, `metrics` the patterns of the
    metrics that decide when it ends.
    """

    id: str
    board: str
    sides: dict[str, list[str]]
    seed: str
    select: str = ""
    profile: str = ""
    blocks: int = 20
    budget_s: float = 0.0
    """0: no budget but the blocks."""
    within: float = 0.02
    boots: int = 0
    """Cold boots of a case of boot times in each round, 0 those of the profile."""
    metrics: list[str] = field(default_factory=list)
    leave_out: list[str] = field(default_factory=list)
    """Cases that are not measured, as BENCHMARK/CASE."""
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

    def order(self, block: int) -> list[str]:
        """The sides of a block in random order, the same each time one asks."""
        return drawn(self.seed, block, (A, B))

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


def drawn(seed: str, block: int, sides: Sequence[str]) -> list[str]:
    """Sides in random order, the same each time one asks."""
    return sorted(sides, key=lambda side: hashlib.sha256(f"{seed}/{block}/{side}".encode()).digest())


def save(folder: Path, experiment: Experiment) -> None:
    """Write the state, so that a reader sees the old or the new and nothing between."""
    write_state(folder / FILE, asdict(experiment))


def load(folder: Path) -> Experiment:
    """Read the state; raises UsageError for a folder without one, or one of a later evmperf."""
    data = read_state(folder / FILE)
    data["rounds"] = [Round(**entry) for entry in data.get("rounds", ())]
    return Experiment(**data)


def write_state(file: Path, data: dict[str, Any]) -> None:
    """Replace a state file atomically; raises LabError when the disk does not take it."""
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


def read_state(file: Path) -> dict[str, Any]:
    """Read a state file; raises UsageError."""
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
    return data


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
